/** Small parts that every view uses: badges, notes, tables, pagers, dialogs, and a hook for events of the page. */
import type { ComponentChildren, TargetedMouseEvent } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { formatAge, formatClock, formatTime } from "./format.ts";

export type Press = (event: TargetedMouseEvent<HTMLButtonElement>) => void;

/** Calls the `listener` of the latest render for as long as the component is on the page. */
export function useListener<E extends Event>(target: EventTarget, type: string, listener: (event: E) => void): void {
  useLayoutEffect(() => {
    const hear = listener as (event: Event) => void;
    target.addEventListener(type, hear);
    return () => target.removeEventListener(type, hear);
  });
}

const RING = "M5 1a4 4 0 1 0 0 8a4 4 0 1 0 0-8";
const TICK = "M1.5 5.5l2.5 2.5l4.5-6";
const PLAY = "M3 1.5l5 3.5l-5 3.5z";

interface Mark {
  readonly colour: string;
  /** Drawn in a box of 10 by 10. */
  readonly path: string;
}

const STATES: Readonly<Record<string, Mark>> = {
  pending: { colour: "wait", path: `${RING}M5 3v2l1.5 1` },
  ready: { colour: "wait", path: PLAY },
  leased: { colour: "wait", path: PLAY },
  gap: { colour: "wait", path: "M1 5h2.5M6.5 5H9" },
  backoff: { colour: "wait", path: "M8.5 5a3.5 3.5 0 1 1-1-2.5M8.5 1v2h-2" },
  held: { colour: "warn", path: "M3 1.5v7M7 1.5v7" },
  handled: { colour: "good", path: TICK },
  replayed: { colour: "good", path: TICK },
  unhandled: { colour: "muted", path: RING },
  filtered: { colour: "muted", path: "M1 2h8l-3 3.5v3l-2-1v-2z" },
  late: { colour: "warn", path: "M5 1l4 4l-4 4l-4-4z" },
  dead: { colour: "bad", path: "M2 2l6 6M8 2l-6 6" },
  blocked: { colour: "bad", path: "M2 1.5h6v7h-6z" },
  discarded: { colour: "muted", path: "M1.5 5h7" },
};
const OTHER_STATE: Mark = { colour: "muted", path: "M4 5h2" };

interface BadgeProps {
  readonly state: string;
  readonly outcome?: string | null;
  readonly late?: boolean;
}

/** The state of an event, a lane or a quarantined body as a word, a shape and a colour. Each of the three is enough alone. */
export function StateBadge({ state, outcome, late }: BadgeProps) {
  const name = state === "done" ? (outcome ?? "handled") : state;
  const { colour, path } = STATES[name] ?? OTHER_STATE;
  return (
    <span class={`badge ${colour}`}>
      <svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
        <path d={path} />
      </svg>
      {name}
      {late && name !== "late" && ", late"}
    </span>
  );
}

export const BROKEN = "Something went wrong on this page.";

/** Shows nothing without an error. */
export function ErrorNote({ error, onRetry }: { readonly error: unknown; readonly onRetry?: (() => void) | null }) {
  if (!error) return null;
  return (
    <p class="note bad" role="alert">
      {error instanceof Error ? error.message : BROKEN}{" "}
      {onRetry && (
        <button type="button" onClick={() => onRetry()}>
          Try again
        </button>
      )}
    </p>
  );
}

export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

/** A time of day, and where there is room how long ago that was. */
export function When({ at }: { readonly at: number | null }) {
  if (at === null) return <>–</>;
  return (
    <span title={formatTime(at)}>
      {formatClock(at)} <span class="ago muted">{formatAge(at)}</span>
    </span>
  );
}

export interface Column<Row> {
  /** Makes the class `c-…`, which sets the width. */
  readonly name: string;
  readonly title: string;
  /** Has the row's link. Default: the first column. */
  readonly isLink?: boolean;
  /** Hidden where there is little room. */
  readonly minor?: boolean;
  readonly cell: (row: Row) => ComponentChildren;
}

export interface DataTableProps<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Default: the row's place, so a row stays where it is and shows other texts when the rows change. */
  readonly keyOf?: (row: Row, index: number) => string | number;
  /** Where a row leads to. */
  readonly hrefOf?: (row: Row) => string | null;
}

/** Rows of one height, so nothing moves when they change. One cell has the row's link; a click anywhere in the row follows it. */
export function DataTable<Row>({
  caption,
  columns,
  rows,
  keyOf = (_row, index) => index,
  hrefOf,
}: DataTableProps<Row>) {
  return (
    <table>
      <caption class="sr-only">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.title} scope="col" class={classOf(column)}>
              {column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <TableRow key={keyOf(row, index)} row={row} columns={columns} href={hrefOf?.(row) ?? null} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps<Row> {
  readonly row: Row;
  readonly columns: readonly Column<Row>[];
  readonly href: string | null;
}

function TableRow<Row>({ row, columns, href }: RowProps<Row>) {
  const linkAt = Math.max(
    0,
    columns.findIndex(({ isLink }) => isLink),
  );
  const cells = columns.map((column, index) => (
    <td key={column.title} class={classOf(column)} data-title={column.title}>
      {href !== null && index === linkAt ? (
        <a href={href} data-row>
          {column.cell(row)}
        </a>
      ) : (
        column.cell(row)
      )}
    </td>
  ));
  if (href === null) return <tr>{cells}</tr>;
  return (
    <tr class="opens" onClick={(event) => follow(href, event.target)}>
      {cells}
    </tr>
  );
}

function classOf<Row>({ name, minor }: Column<Row>): string {
  return minor ? `c-${name} lesser` : `c-${name}`;
}

/** Not for a click on a control in the row, or in a dialog that one of them opened; and not when the user selects a text. */
function follow(href: string, target: EventTarget | null): void {
  const isControl = target instanceof Element && target.closest("a, button, input, label, dialog") !== null;
  if (!isControl && getSelection()?.isCollapsed !== false) location.hash = href;
}

export interface Steps {
  readonly onNewest?: (() => void) | null;
  readonly onPrevious?: (() => void) | null;
  readonly onNext?: (() => void) | null;
}

/** Moves through the pages of a list. It is above the list, where it stays while rows come and go. */
export function Pager({ of, onNewest, onPrevious, onNext }: Steps & { readonly of?: string }) {
  return (
    <nav aria-label={of === undefined ? "Pages" : `Pages of ${of}`}>
      <SoftButton label="Newest" onPress={onNewest} />
      <SoftButton label="Previous" onPress={onPrevious} />
      <SoftButton label="Next" onPress={onNext} />
    </nav>
  );
}

/** Without `onPress` it looks disabled but keeps the focus: at the end of a list the keyboard stays where it is. */
function SoftButton({
  label,
  onPress,
}: {
  readonly label: string;
  readonly onPress?: (() => void) | null | undefined;
}) {
  return (
    <button type="button" aria-disabled={onPress ? undefined : true} onClick={() => onPress?.()}>
      {label}
    </button>
  );
}

/** The options of a `select`. */
export function Options({ values }: { readonly values: readonly string[] }) {
  return values.map((value) => (
    <option key={value} value={value}>
      {value}
    </option>
  ));
}

/** The open dialogs; keys belong to the last one. */
const openDialogs: (HTMLDialogElement | null)[] = [];

export interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children?: ComponentChildren;
}

/** The browser keeps the focus inside the dialog. When it closes, the element that opened it gets the focus back. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const opener = document.activeElement;
    const shown = dialog.current;
    shown?.showModal();
    openDialogs.push(shown);
    return () => {
      openDialogs.splice(openDialogs.indexOf(shown), 1);
      shown?.close();
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  const cancel = (event: Event) => {
    event.preventDefault();
    onClose();
  };
  // Chromium closes a dialog at the second Escape, even if its `cancel` event was prevented. On the document, not the dialog: the
  // element that had the focus may be gone.
  useListener<KeyboardEvent>(document, "keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented && openDialogs.at(-1) === dialog.current) cancel(event);
  });
  return (
    <dialog ref={dialog} aria-label={title} onCancel={cancel}>
      <div class="head">
        <h2>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </div>
      {children}
    </dialog>
  );
}

export interface ConfirmProps extends DialogProps {
  /** The label of the button that does it. */
  readonly verb: string;
  readonly danger?: boolean | undefined;
  readonly onConfirm: Press;
}

/** A question before something is done. */
export function Confirm({ title, verb, danger, onClose, onConfirm, children }: ConfirmProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{children}</p>
      <p class="choices">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class={danger ? "danger" : "primary"} onClick={onConfirm}>
          {verb}
        </button>
      </p>
    </Dialog>
  );
}
