/** Acts on one event, message or quarantined body: a button asks first, and a message at the edge of the page reports the result. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ActAnswer, ActRefusal } from "../api.ts";
import { ApiFailure, post } from "./api.ts";
import { useLive } from "./live.ts";
import { BROKEN, Confirm, type Press } from "./parts.tsx";

export interface ActInfo {
  readonly verb: string;
  readonly explain: string;
  /** It takes something away. */
  readonly danger?: boolean;
}

const EVENT_ACTS = {
  replay: { verb: "Replay", explain: "Your handlers get the event again, even if later events were handled." },
  discard: {
    verb: "Discard",
    explain: "No handler gets the event any more. Events that wait behind it go on.",
    danger: true,
  },
  unblock: {
    verb: "Unblock",
    explain: "The lane goes on with its next event. The dead letter stays, and can still be replayed.",
  },
  release: {
    verb: "Release gap",
    explain: "The missing events are skipped. If they arrive later, they count as late.",
  },
  replay_quarantined: {
    verb: "Replay",
    explain: "The body is parsed again, for example after an upgrade, and accepted if it is a valid event now.",
  },
  discard_quarantined: {
    verb: "Discard",
    explain: "The body is set aside, and can no longer be replayed.",
    danger: true,
  },
} satisfies Readonly<Record<string, ActInfo>>;

export type ActName = keyof typeof EVENT_ACTS;
export const ACTS: Readonly<Record<ActName, ActInfo>> = EVENT_ACTS;

const REFUSALS: Readonly<Record<ActRefusal, string>> = {
  not_found: "It is no longer in the inbox.",
  in_progress: "A worker is handling it now. Try again in a moment.",
  body_pruned: "Its body is no longer kept.",
  wrong_state: "It is no longer in that state: somebody else acted on it, or it was handled.",
  invalid_event: "The body is still not a valid event to this version, or its secret does not vouch for it.",
  source_needed: "It came through a source that only the application has: replay it there.",
};

/** True if the act was refused for what it was done on; the next one of a series may succeed. */
export function wasRefused({ code }: ApiFailure): boolean {
  return Object.hasOwn(REFUSALS, code);
}

/** Why something was not done. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof ApiFailure)) return BROKEN;
  return wasRefused(error) ? REFUSALS[error.code as ActRefusal] : error.message;
}

/** Part of the markup from the start: a screen reader announces only changes of an element that it knows. */
function announcer(): HTMLElement | null {
  return document.getElementById("said");
}

/** Shows a result, and has a screen reader announce it. It stays until the next click or view. */
export function say(text: string): void {
  clearSaid();
  // A screen reader announces the same text again only if it was gone in between.
  requestAnimationFrame(() => announcer()?.replaceChildren(text));
}

export function clearSaid(): void {
  announcer()?.replaceChildren();
}

/** For errors that have no place of their own in the view. */
export function sayWhy(error: unknown): void {
  say(reasonOf(error));
}

/** Without the right to write to the clipboard, the text must be in the view too. */
export function CopyButton({ text, label }: { readonly text: string; readonly label: string }) {
  const copy = () => {
    const copied = navigator.clipboard?.writeText(text) ?? Promise.reject();
    copied.then(
      () => say("Copied."),
      () => say("The browser does not allow this page to copy: select the text instead."),
    );
  };
  return (
    <button type="button" onClick={copy}>
      {label}
    </button>
  );
}

export interface Rights {
  readonly canAct: boolean;
  readonly canReveal: boolean;
  /** What to say where a right is missing. Before the rights are known, it says that. */
  refused(text: string): string;
}

export function useRights(): Rights {
  const access = useLive().overview?.access;
  return {
    canAct: access === "act" || access === "reveal",
    canReveal: access === "reveal",
    refused: (text) => (access === undefined ? "The page does not know yet what you may do." : text),
  };
}

export interface AskingProps {
  readonly label: string;
  /** Names the row, for screen readers. */
  readonly about?: string | undefined;
  readonly danger?: boolean | undefined;
  readonly disabled?: boolean;
  /** Makes the dialog. */
  readonly ask: (close: () => void) => ComponentChildren;
}

/** A button that opens a dialog. Without the right to act it keeps its place in the tab order, and says why it does nothing. */
export function Asking({ label, about, danger, disabled = false, ask }: AskingProps) {
  const { canAct, refused } = useRights();
  const why = canAct ? undefined : refused("You may look here, but not act.");
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => () => passFocusOn(button.current), []);
  const press = () => {
    if (why !== undefined) say(why);
    else if (!disabled) setOpen(true);
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        class={danger ? "act danger" : "act"}
        title={why}
        aria-disabled={why !== undefined || disabled || undefined}
        onClick={press}
      >
        {label}
        {about && <span class="sr-only"> {about}</span>}
      </button>
      {isOpen && ask(() => setOpen(false))}
    </>
  );
}

/** When a row disappears with the focus in it, the next row gets the focus. */
function passFocusOn(button: HTMLButtonElement | null): void {
  if (button === null || document.activeElement !== button) return;
  const row = button.closest("tr");
  const neighbour = row?.nextElementSibling ?? row?.previousElementSibling;
  neighbour?.querySelector<HTMLButtonElement>("button.act")?.focus({ preventScroll: true });
}

interface ActButtonProps {
  readonly act: ActName;
  readonly path: string;
  readonly about?: string | undefined;
  readonly onDone?: (() => void) | undefined;
}

/**
 * One act: asks, does it, reports the result. Lists hear the event `acted` and load again, also after a refusal: what they show is old then.
 * Any other view gets `onDone`.
 */
function ActButton({ path, act, about, onDone }: ActButtonProps) {
  const { verb, explain, danger } = ACTS[act];
  const what = about ? `${verb} ${about}` : verb;
  const ask = (close: () => void) => {
    const run: Press = async ({ currentTarget }) => {
      currentTarget.disabled = true;
      const error = await tryAct(path);
      close();
      say(error === null ? `${what}: done.` : `${what}: not done. ${reasonOf(error)}`);
      dispatchEvent(new Event("acted"));
      onDone?.();
    };
    return (
      <Confirm title={`${what}?`} verb={verb} danger={danger} onClose={close} onConfirm={run}>
        {explain}
      </Confirm>
    );
  };
  return (
    <>
      <Asking label={verb} about={about} danger={danger} ask={ask} />{" "}
    </>
  );
}

export interface ActButtonsProps {
  readonly acts: readonly ActName[];
  /** The path of what is acted on: `api/events/7`. */
  readonly of: string;
  readonly about?: string | undefined;
  readonly onDone?: (() => void) | undefined;
}

export function ActButtons({ acts, of, about, onDone }: ActButtonsProps) {
  return acts.map((act) => (
    <ActButton key={act} act={act} path={`${of}/${act.replace("_quarantined", "")}`} about={about} onDone={onDone} />
  ));
}

/** Null when it was done, otherwise the error. */
export function tryAct(path: string): Promise<unknown> {
  return post<ActAnswer>(path, {}).then(
    () => null,
    (error: unknown) => error,
  );
}
