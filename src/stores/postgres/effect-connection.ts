/** The connection that effects get: lent for a limited time, guarded against ending the transaction, and restored afterwards. */
import { OncehookError, SetupError } from "../../errors.ts";
import type { Effect, LeaseRef } from "../../inbox/store.ts";
import { refuseUnrun } from "../../inbox/store-rules.ts";
import { type Clock, sleep } from "../../internal/clock.ts";
import { STATUS } from "../database.ts";
import { isContention, isGivenUp, isUnanswered, leadsAstray, refusesWrites, sqlState } from "./failures.ts";
import type { PgInbox } from "./open.ts";
import {
  ANSWER_MS,
  BEGIN,
  CLOCK,
  CONNECT_MS,
  LIMIT_MS,
  limit,
  type Opening,
  OUR_SETTINGS,
  type PgClient,
  type PgSession,
} from "./session.ts";

/** Settings that an effect may change for its transaction and that must be restored. */
const KEPT = ["session_authorization", "role", "search_path", "lock_timeout", "statement_timeout"] as const;
const quoted = (texts: readonly string[]) => texts.map((text) => `'${text}'`).join(", ");

/** How a transaction of effects begins: with the application's own settings, and with what is to be restored. */
export interface EffectOpening extends Opening {
  readonly now: number;
  /** The number of the transaction. */
  readonly transaction: string;
  /** Whether the lease was still held. */
  readonly held: boolean;
  /** The values of `KEPT`. */
  readonly kept: readonly string[];
}

/** Guard first: a lost lease runs no effect. A text, because a plan that is kept could date from a time when the table was small. */
export function opening({ access, instance }: PgInbox, { lane, token, event }: LeaseRef): string {
  return `${BEGIN}; select ${CLOCK} as now, pg_current_xact_id()::text as transaction,
    json_build_array(${KEPT.map((name) => `current_setting('${name}')`).join(", ")}) as kept,
    (${limit("statement_timeout")}), (${limit("idle_in_transaction_session_timeout")}),
    exists (select 1 from ${access.schema}.lane where id = ${lane} and token = ${token} and leased = ${event} and holder = ${instance}
      and status + 0 = ${STATUS.leased}) as held`;
}

/** Deferred constraints are checked now: in the commit, a violation would look like a failure of the inbox. */
export const CHECK = "set constraints all immediate";
/** Restores `KEPT`, given as `$1`, and makes our own settings. */
export const RESTORE = `select pg_current_xact_id_if_assigned()::text as transaction, (
    select count(set_config(setting, value, true))
    from unnest(array[${quoted([...KEPT, ...Object.keys(OUR_SETTINGS)])}], $1::text[] || array[${quoted(Object.values(OUR_SETTINGS))}])
      as wanted (setting, value)
    where current_setting(setting) <> value) as restored`;
/** Needs a new page and file, which a full disk refuses. It disappears with its transaction. */
const PROBE = "rollback; begin; create temporary table oncehook_probe as select 1";

const FAILED_TRANSACTION = "25P02";

/** An effect threw, took too long, or did something forbidden. The transaction is run again if `code` names a conflict with another one. */
export class EffectFailed extends Error {
  /** The SQLSTATE of a conflict with another transaction, otherwise empty: other codes could be mistaken for the inbox's own. */
  readonly code: string;
  /** The inbox's own server accepts no writes from anyone. */
  readonly isRefused: boolean;

  constructor(cause: unknown, isRefused: boolean) {
    super("An effect threw.", { cause });
    this.code = isContention(cause) ? sqlState(cause) : "";
    this.isRefused = isRefused;
  }
}

/** Runs `effects` one after the other, with the connection lent to functions. @throws EffectFailed */
export async function runEffects(
  session: PgSession,
  effects: readonly Effect<PgClient>[],
  clock: Clock,
): Promise<void> {
  const { client } = session;
  const loan = new Loan(client);
  try {
    await inTime(clock, async () => {
      for (const effect of effects) {
        if (loan.isOver) return;
        if (typeof effect === "function") refuseUnrun(await effect(loan.client), "during");
        else await client.query(effect.text, effect.values);
        loan.check();
      }
      loan.isOver = true;
    });
  } catch (cause) {
    loan.isOver = true;
    throw await effectFailed(session, loan.refusal ?? cause);
  }
}

/** The failure of what followed the effects: theirs, if they have forbidden their transaction to write. */
export async function failureAfter(session: PgSession, error: unknown): Promise<unknown> {
  if (error instanceof EffectFailed || !refusesWrites(error) || (await isRefused(session))) return error;
  return new EffectFailed(error, false);
}

/** The failure of effects for the reason `cause`. */
async function effectFailed(session: PgSession, cause: unknown): Promise<EffectFailed> {
  const error = isGivenUp(cause) ? tooSlow(cause) : cause;
  // A query that still runs on the connection must neither continue nor be waited for.
  if (isTooSlow(error)) session.discard(error);
  return new EffectFailed(error, refusesWrites(error) && (await isRefused(session)));
}

/** Ends the effects, before the statements of the inbox. @throws EffectFailed */
export async function takeBack(session: PgSession, { kept, transaction }: EffectOpening): Promise<void> {
  const { client, rows } = session;
  try {
    await client.query({ text: CHECK, query_timeout: ANSWER_MS });
    const [row] = await rows<{ readonly transaction: string | null }>("restore", RESTORE, [kept]);
    if (row?.transaction === transaction) return;
  } catch (cause) {
    if (isUnanswered(cause)) throw cause;
    throw await effectFailed(session, sqlState(cause) === FAILED_TRANSACTION ? caught(cause) : cause);
  }
  throw new EffectFailed(endedTransaction(), false);
}

/** Checks that a statement that failed left its transaction open, and not what an effect had begun after it. @throws EffectFailed */
export async function checkOpen({ client }: PgSession): Promise<void> {
  const isOpen = await client.query({ text: "select 1", query_timeout: ANSWER_MS }).then(
    () => false,
    (error: unknown) => sqlState(error) === FAILED_TRANSACTION || Promise.reject(error),
  );
  if (!isOpen) throw new EffectFailed(endedTransaction(), false);
}

/** Asks this server whether it accepts writes, because the error may come from another database of the application. */
async function isRefused({ client, discard }: PgSession): Promise<boolean> {
  try {
    await client.query({ text: PROBE, query_timeout: CONNECT_MS });
    return false;
  } catch (error) {
    if (isUnanswered(error) || leadsAstray(error)) discard(error);
    return isUnanswered(error) || refusesWrites(error);
  }
}

async function inTime(clock: Clock, work: () => Promise<void>): Promise<void> {
  const ended = new AbortController();
  const late = sleep(clock, LIMIT_MS, ended.signal).then(() => {
    if (!ended.signal.aborted) throw tooSlow();
  });
  try {
    await Promise.race([work(), late]);
  } finally {
    ended.abort();
  }
}

function tooSlow(cause?: unknown): OncehookError {
  const message = `The effects of an event took longer than ${LIMIT_MS} ms, or than pg waits for an answer: do slow work before ctx.commit.`;
  return new OncehookError("handler_timeout", message, { cause });
}

export function isTooSlow(error: unknown): error is OncehookError {
  return error instanceof OncehookError && error.code === "handler_timeout";
}

const NESTED = "savepoint oncehook_nested";
const REPLACEMENTS = {
  begin: NESTED,
  "begin read only": `${NESTED}; set transaction read only`,
  commit: `release ${NESTED}`,
  // The savepoint stays below the next one and is released with that of all effects.
  rollback: `rollback to ${NESTED}`,
} as const;

type Callback = (error: unknown, result?: unknown) => void;

/**
 * The connection as an effect sees it: usable until the loan ends, without `end()`, and with a savepoint instead of a transaction, so
 * that an ORM's `transaction()` works. No statement that begins or ends a transaction reaches the server.
 */
class Loan {
  readonly client: PgClient;
  isOver = false;
  /** True while a savepoint stands for a transaction of the effect. */
  #isNested = false;
  /** The first refusal. The effect has failed even if it caught that error, because its next statements were meant for another transaction. */
  #refusal: SetupError | null = null;
  readonly #own: PgClient;

  constructor(own: PgClient) {
    this.#own = own;
    // Properties that an ORM or a tracer sets must not outlive the loan, because the pool gives the connection to others.
    const set = new Map<string | symbol, unknown>();
    this.client = new Proxy(own, {
      get: (target, key) => (set.has(key) ? set.get(key) : this.#get(target, key)),
      set: (_target, key, value) => set.set(key, value) === set,
      deleteProperty: (_target, key) => set.delete(key) || true,
    });
  }

  /** Null while nothing was refused. Preferred to the error of an ORM, which wraps it and says less. */
  get refusal(): SetupError | null {
    return this.#refusal;
  }

  /** Checks an effect that has returned. @throws SetupError when a statement was refused, or when it left its transaction open */
  check(): void {
    if (this.#isNested) this.#refusal ??= new SetupError("invalid_argument", LEFT_OPEN);
    if (this.#refusal !== null) throw this.#refusal;
  }

  #get(target: PgClient, key: string | symbol): unknown {
    if (key === "release") return () => {};
    if (key === "end") return () => this.#refuse(ENDS_CONNECTION);
    const value: unknown = Reflect.get(target, key, target);
    if (typeof value !== "function" || key === "constructor") return value;
    return (...values: readonly unknown[]) => {
      // A query that was not awaited would run in another transaction.
      if (this.isOver) throw new SetupError("invalid_argument", TOO_LATE);
      return key === "query" ? this.#query(values) : Reflect.apply(value, target, values);
    };
  }

  #query(values: readonly unknown[]): unknown {
    const [query] = values;
    const control = transactionControlOf(this.#textOf(query));
    if (control === null) return Reflect.apply(this.#own.query, this.#own, values);
    const text = this.#replacement(control);
    if (isSubmittable(query)) this.#refuse(SUBMITTABLE);
    const wasNested = this.#isNested;
    this.#isNested = text.startsWith(NESTED);
    const sent = this.#own.query(text);
    sent.catch(() => {
      this.#isNested = wasNested;
    });
    const callback = callbackOf(values);
    return callback === undefined ? sent : void sent.then((result) => callback(null, result), callback);
  }

  /** The query's text; pg itself refuses values such as null. */
  #textOf(query: unknown): string {
    if (typeof query !== "object" || query === null) return typeof query === "string" ? query : "";
    const { text } = query as { readonly text?: unknown };
    return typeof text === "string" ? text : this.#refuse(WITHOUT_TEXT);
  }

  #replacement(control: TransactionControl): string {
    if (control === "isolation") return this.#refuse(ISOLATION);
    if (control === "other") return this.#refuse(OTHER_CONTROL);
    const begins = control === "begin" || control === "begin read only";
    if (begins && this.#isNested) return this.#refuse(OPEN_ALREADY);
    if (!begins && !this.#isNested) return this.#refuse(ENDS_TRANSACTION);
    return REPLACEMENTS[control];
  }

  #refuse(message: string): never {
    const refusal = new SetupError("invalid_argument", message);
    this.#refusal ??= refusal;
    throw refusal;
  }
}

/** A query object, such as a cursor, which writes itself to the connection. */
function isSubmittable(query: unknown): boolean {
  return typeof query === "object" && query !== null && "submit" in query && typeof query.submit === "function";
}

/** Finds the callback as pg does: after the text or the values, or in the query. */
function callbackOf([query, ...rest]: readonly unknown[]): Callback | undefined {
  const own = typeof query === "object" && query !== null && "callback" in query ? query.callback : undefined;
  return [...rest.slice(0, 2).reverse(), own].find((value) => typeof value === "function") as Callback | undefined;
}

const TOO_LATE =
  "The effect has ended, and so has its use of the connection: await each query inside the function that you passed to ctx.commit.";
const ENDS_CONNECTION = "The connection that ctx.commit passes belongs to the inbox: do not end it.";
const ENDS_TRANSACTION =
  "An effect cannot commit or roll back the transaction that it shares with its event's completion: throw to roll it back.";
const OPEN_ALREADY =
  "A transaction is already open on the connection that ctx.commit passes: await its end before the next one, or use a savepoint.";
const LEFT_OPEN =
  "An effect left a transaction open: await the end of each transaction inside the function that you passed to ctx.commit.";
const ISOLATION =
  "An effect shares its event's transaction, which is READ COMMITTED: begin its own without another isolation level, and lock rows instead.";
const OTHER_CONTROL =
  "An effect sent a statement that would end the transaction that it shares with its event's completion. Send begin, commit and rollback each in a query of its own, without CHAIN, and do not use PREPARE TRANSACTION: they become a savepoint.";
const SUBMITTABLE = "An effect can begin, commit and roll back only with a text, not with a query object.";
const WITHOUT_TEXT =
  "A query without a text cannot be checked for its effect on the transaction: give the query its text as well as its name.";

function caught(cause: unknown): SetupError {
  const message =
    "A statement of an effect failed and its error was caught, which leaves the transaction unusable: let it be thrown, or set a savepoint before it.";
  return new SetupError("invalid_argument", message, { cause });
}

function endedTransaction(): SetupError {
  return new SetupError(
    "invalid_argument",
    "An effect ended the transaction that it shares with its event's completion: leave commit, rollback and begin to the inbox.",
  );
}

/** First words of statements that outlast an effect, or end its transaction. */
const NOT_DECLARED = /^(?:begin|start|commit|end|abort|rollback|prepare|savepoint|release|set|reset|discard)$/;

/** Refuses a declared text that is not one statement, or that an effect must not send. @throws SetupError `invalid_argument` */
export function refuseControl(text: string): void {
  const [words, ...others] = statementsOf(text);
  if (words === undefined || others.length > 0) {
    const message = "A declared effect of ctx.commit must be one statement: pass an array of several.";
    throw new SetupError("invalid_argument", message);
  }
  if (!NOT_DECLARED.test(words[0] ?? "")) return;
  const message = `A declared effect of ctx.commit cannot begin with ${words[0]?.toUpperCase()}: it shares its event's transaction, whose begin, end and settings belong to the inbox. A function may set something for itself: ctx.commit((tx) => …).`;
  throw new SetupError("invalid_argument", message);
}

// Detection of statements that begin or end a transaction, however they are written, before they are sent.

/**
 * What a text does to the transaction that it is sent in. `isolation`: a level other than READ COMMITTED. `other`: a statement without
 * a counterpart inside a transaction, such as `commit and chain`, or a `commit` among other statements.
 */
type TransactionControl = "begin" | "begin read only" | "commit" | "rollback" | "isolation" | "other";

const FIRST_WORDS = new Set(["begin", "start", "commit", "end", "abort", "rollback", "prepare", "set"]);
const FIRST_WORD = /^\s*([a-z]+)/i;
const ANY_WORD = new RegExp(`\\b(?:${[...FIRST_WORDS].join("|")})\\b`, "i");

/** Null for every other statement. Runs for each query of an effect; most are recognised by their first word. */
export function transactionControlOf(text: string): TransactionControl | null {
  if (!text.includes(";")) {
    const word = FIRST_WORD.exec(text)?.[1];
    if (word !== undefined && !FIRST_WORDS.has(word.toLowerCase())) return null;
  }
  if (!ANY_WORD.test(text)) return null;
  const statements = statementsOf(text);
  const controls = statements.flatMap((words) => controlOf(words.join(" ")) ?? []);
  if (controls.length > 0 && statements.length > 1) return "other";
  return controls[0] ?? null;
}

const BEGINNING = /^(?:begin(?: work| transaction)?|start transaction)(?<modes>| .*)$/;
const SET_MODES = /^set (?:local |session )?transaction(?<modes> .*)$/;
/** The modes that the inbox's own transaction has, or can have for a part of it. */
const MODES = /^(?:(?: ,)? (?:isolation level read (?:un)?committed|read only|read write|(?:not )?deferrable))*$/;
const END = /^(?<end>commit|end|rollback|abort)(?: work| transaction)?(?: and no chain)?$/;
const TO_SAVEPOINT = /^rollback (?:work |transaction )?to /;
const OTHER = /^(?:begin|start transaction|commit|end|rollback|abort|prepare transaction)(?: |$)/;

/** @param words - of one statement, in lower case, with a blank between them */
function controlOf(words: string): TransactionControl | null {
  if (TO_SAVEPOINT.test(words)) return null;
  const begin = BEGINNING.exec(words)?.groups?.modes;
  if (begin !== undefined && MODES.test(begin)) return begin.includes("read only") ? "begin read only" : "begin";
  const modes = begin ?? SET_MODES.exec(words)?.groups?.modes ?? "";
  if (/ isolation level (?:serializable|repeatable read)(?: |$)/.test(modes)) return "isolation";
  const end = END.exec(words)?.groups?.end;
  if (end !== undefined) return end === "commit" || end === "end" ? "commit" : "rollback";
  return OTHER.test(words) ? "other" : null;
}

/** No relevant statement has more words before its end. */
const MOST_WORDS = 20;
const ROUTINE = /^create (?:or replace )?(?:function|procedure)$/;
const SPACE_OR_COMMENT = /^(?:\s|--|\/\*)/;
const WORD = /[a-z_\u0080-\uffff][\w$\u0080-\uffff]*/iy;

/** The first words of each non-empty statement. A token that is neither a word nor punctuation is `?`. */
function statementsOf(text: string): string[][] {
  const statements: string[][] = [];
  let words: string[] = [];
  // A routine's body in standard SQL, BEGIN ATOMIC … END, contains semicolons.
  let blocks = 0;
  for (let at = 0; at < text.length; ) {
    const end = endOfToken(text, at);
    const token = text.slice(at, end);
    at = end;
    if (token === ";" && blocks === 0) {
      if (words.length > 0) statements.push(words);
      words = [];
    } else if (!SPACE_OR_COMMENT.test(token)) {
      const word = wordOf(token);
      if (words.length < MOST_WORDS) words.push(word);
      if (word === "begin" && words.length > 1 && isRoutine(words)) blocks++;
      else if (word === "case" && blocks > 0) blocks++;
      else if (word === "end" && blocks > 0) blocks--;
    }
  }
  if (words.length > 0) statements.push(words);
  return statements;
}

function wordOf(token: string): string {
  WORD.lastIndex = 0;
  const isWord = WORD.test(token) && WORD.lastIndex === token.length;
  if (isWord) return token.toLowerCase();
  return token.length === 1 ? token : "?";
}

function isRoutine(words: readonly string[]): boolean {
  return ROUTINE.test(words.slice(0, 2).join(" ")) || ROUTINE.test(words.slice(0, 4).join(" "));
}

/** Follows the server's lexical rules, with `standard_conforming_strings` on. An unclosed token reaches to the end of the text. */
function endOfToken(text: string, at: number): number {
  const char = text[at];
  const next = text[at + 1];
  if (char === "-" && next === "-") return after(text, /[\n\r]/g, at);
  if (char === "/" && next === "*") return endOfComment(text, at);
  if (char === "'" || char === '"') return after(text, char === "'" ? /'/g : /"/g, at + 1);
  if ((char === "e" || char === "E") && next === "'") return endOfEscapes(text, at + 2);
  if (char === "$") return endOfDollars(text, at);
  WORD.lastIndex = at;
  return WORD.test(text) ? WORD.lastIndex : at + 1;
}

/** The index after the next match. A doubled quote reads as two strings in a row, which makes no difference. */
function after(text: string, pattern: RegExp, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : text.length;
}

/** Comments nest. */
function endOfComment(text: string, at: number): number {
  const mark = /\/\*|\*\//g;
  let depth = 0;
  mark.lastIndex = at;
  for (let found = mark.exec(text); found !== null; found = mark.exec(text)) {
    depth += found[0] === "/*" ? 1 : -1;
    if (depth === 0) return mark.lastIndex;
  }
  return text.length;
}

/** E'…', in which a backslash escapes a quote. The string continues after a doubled quote and on a later line. */
function endOfEscapes(text: string, at: number): number {
  const end = /\\[\s\S]|'(?:'|\s*[\n\r]\s*')?/g;
  end.lastIndex = at;
  for (let found = end.exec(text); found !== null; found = end.exec(text)) {
    if (found[0] === "'") return end.lastIndex;
  }
  return text.length;
}

/** $tag$ … $tag$; or the number of a parameter. */
function endOfDollars(text: string, at: number): number {
  const tag = /\$(?:[a-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/iy;
  tag.lastIndex = at;
  const opening = tag.exec(text)?.[0];
  if (opening === undefined) return at + 1;
  const closing = text.indexOf(opening, at + opening.length);
  return closing === -1 ? text.length : closing + opening.length;
}
