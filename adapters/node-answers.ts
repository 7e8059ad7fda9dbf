/** Sends the answers of one mount, and reports those that could not be sent: once for each reason. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { answers, foreignLabels, type LogFields, type Logger, SetupError } from "../src/index.ts";
import { isExpressRequest, wrongNodeArguments } from "./host-fixes.ts";
import { sendAnswer, type WholeAnswer } from "./node-answer.ts";
import { breakOff, isAnswered, isGone } from "./node-ending.ts";

const TAKEN =
  "Something else answered a request before oncehook could, so the sender did not get oncehook's answer: an event that could not be " +
  "stored is lost if the sender was told 2xx. Return or await the promise that the handler returns, and send no other answer.";
const FAILED =
  "An answer could not be written, because something threw that wraps the response or changes its headers. The connection was closed, " +
  "and the service retries. `at` is where it threw.";
const TAKEN_EXPRESS =
  "In NestJS: return this.hook(request, response), with @Res() and no passthrough. In Express: call no response.send() or next() on this route.";
const TAKEN_NODE = "In Koa: await hook(ctx.req, ctx.res), and set ctx.respond = false.";

/** One per mount. None of its promises rejects. */
export class NodeAnswers {
  readonly #logger: Logger;
  readonly #reported = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Writes `answer`. Resolves when the response is written out or its connection has closed. */
  send(answer: WholeAnswer, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const failed = (error: unknown) => this.#letGo(error, response);
    return this.write(request, response, () => sendAnswer(answer, { request, response, failed }));
  }

  /** As `send`, with whatever `write` writes. */
  write(request: IncomingMessage, response: ServerResponse, write: () => void): Promise<void> {
    // What has answered instead may wait for this promise.
    return this.begin(request, response, write) ? untilOver(response) : Promise.resolve();
  }

  /** Lets `write` answer, unless something else has. What it throws is logged, and the connection let go of. */
  begin(request: IncomingMessage, response: ServerResponse, write: () => void): boolean {
    if (isAnswered(response)) {
      const fix = isExpressRequest(request) ? TAKEN_EXPRESS : TAKEN_NODE;
      this.#report({ code: "already_answered", status: response.statusCode }, `${TAKEN} ${fix}`);
      return false;
    }
    try {
      write();
    } catch (error) {
      this.#letGo(error, response);
    }
    return true;
  }

  /**
   * Answers 500 when a host's own objects came in place of Node's, and logs the fix. Null when they are Node's.
   *
   * @throws SetupError `invalid_option` when nothing can be answered, so that the host reports it
   */
  refuseWrongArguments(owner: string, request: unknown, response: unknown): Promise<void> | null {
    const wrong = wrongNodeArguments(request, response);
    if (wrong === null) return null;
    const { fix, exchange } = wrong;
    const message = `${owner} needs Node's own request and response. ${fix}`;
    if (exchange === null) throw new SetupError("invalid_option", message);
    this.#report({ code: "wrong_arguments" }, `A request was answered with 500. ${message}`);
    return this.send(answers.unread(answers.MISCONFIGURED), exchange.request, exchange.response);
  }

  /** Its message may hold anything, so only its kind and its place are logged. */
  #letGo(error: unknown, response: ServerResponse): void {
    const reason = `${error instanceof Error ? "an error" : typeof error}${foreignLabels(error)}`;
    this.#report({ code: "answer_failed", reason, ...placeOf(error) }, FAILED);
    breakOff(response);
  }

  #report(fields: LogFields, message: string): void {
    const key = `${fields.code} ${fields.reason}`;
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    this.#logger.error(fields, message);
  }
}

/** The first frame that is not Node's own, `file:line:column`. */
function placeOf(error: unknown): { readonly at?: string } {
  const stack = error instanceof Error ? String(error.stack) : "";
  const [, at] = /^ +at (?!.*\(?node:)(?:.* \()?([^()\n]+:\d+:\d+)\)?$/m.exec(stack) ?? [];
  return at === undefined ? {} : { at };
}

/** "close" never comes on a response that is only simulated, nor "finish" on one whose sender is gone. */
function untilOver(response: ServerResponse): Promise<void> {
  if (isGone(response) || response.writableFinished) return Promise.resolve();
  return new Promise((resolve) => {
    response.once("finish", resolve);
    response.once("close", resolve);
  });
}
