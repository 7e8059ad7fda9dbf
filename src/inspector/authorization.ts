/** Asks the application what somebody may do. Whatever is not one of the answers it can give is a no. */
import { errorPlaceOf, foreignLabels } from "../internal/foreign-error.ts";
import type { Logger } from "../internal/logger.ts";
import { isRecord } from "../internal/type-guards.ts";
import type { Access } from "./api.ts";
import type { ResolvedInspector } from "./options.ts";

export interface Granted {
  readonly access: Access;
  /** Who it is, for the audit. */
  readonly by: string;
}

export type Authorize<Request> = (request: Request) => Promise<Granted | false>;

const LEVELS: readonly unknown[] = ["read", "act", "reveal"] satisfies readonly Access[];
const NAMELESS = "inspector";
const LONGEST_NAME = 100;
/** Controls, and what turns the direction of a line: a name must not make an audit read otherwise than it is. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

export function authorization<Request>({
  authorize,
  logger,
}: Pick<ResolvedInspector<Request>, "authorize" | "logger">): Authorize<Request> {
  let isMistakeTold = false;
  return async (request) => {
    const answer: unknown = await asked(authorize, request, logger);
    const granted = grantedBy(answer);
    if (granted !== undefined) return granted;
    if (!isMistakeTold)
      logger.error(
        { code: "authorize_mistake" },
        'authorize() of createInspector() gave something else than "read", "act", "reveal", false or { access, by } of these: it denies.',
      );
    isMistakeTold = true;
    return false;
  };
}

/** Whether who has `access` may do what needs `needed`. */
export function includes(access: Access, needed: Access): boolean {
  return LEVELS.indexOf(access) >= LEVELS.indexOf(needed);
}

async function asked<Request>(
  authorize: ResolvedInspector<Request>["authorize"],
  request: Request,
  logger: Logger,
): Promise<unknown> {
  try {
    return await authorize(request);
  } catch (error) {
    // Cookies and tokens went through it, and it may quote them.
    logger.warn(
      { code: "authorize_failed", ...errorPlaceOf(error) },
      `authorize() of createInspector() threw${foreignLabels(error)}: it denies.`,
    );
    return false;
  }
}

/** Undefined for what is no answer. */
function grantedBy(answer: unknown): Granted | false | undefined {
  if (answer === false) return false;
  if (isAccess(answer)) return { access: answer, by: NAMELESS };
  if (!isRecord(answer)) return undefined;
  const { access, by } = answer;
  if (!isAccess(access) || !(by === undefined || typeof by === "string")) return undefined;
  return { access, by: boundedName(by ?? "") };
}

function isAccess(value: unknown): value is Access {
  return LEVELS.includes(value);
}

function boundedName(by: string): string {
  const visible = [
    ...by
      .slice(0, 10 * LONGEST_NAME)
      .replace(INVISIBLE, "")
      .trim(),
  ]
    .slice(0, LONGEST_NAME)
    .join("");
  return visible === "" ? NAMELESS : visible;
}
