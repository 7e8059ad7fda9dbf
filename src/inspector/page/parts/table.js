/** A list of rows of one height, so that nothing moves when they change. */
import { html } from "../vendor/htm-preact.js";

/**
 * `name` makes the class `c-…`, for its width; behind it `lesser` may stand, for what is left out where there is little room.
 *
 * @template Row
 * @typedef {[name: string, title: string, cell: (row: Row) => unknown]} Column
 */

/**
 * The first column is the row's link, if it leads somewhere: by Enter, and by a click anywhere in the row. Without `keyOf`, a row stays in
 * its place and gets other words when the rows change.
 *
 * @template Row
 * @param {{ caption: string, columns: readonly Column<Row>[], rows: readonly Row[], keyOf?: (row: Row, index: number) => string | number, hrefOf?: (row: Row) => string | null }} props
 */
export function Table({ caption, columns, rows, keyOf = placeOf, hrefOf }) {
  const line = (/** @type {Row} */ row, /** @type {number} */ at) => {
    const href = hrefOf?.(row);
    return html`<tr key=${keyOf(row, at)} class=${href && "opens"} onClick=${(/** @type {MouseEvent} */ event) => href && open(event, href)}>
      ${columns.map(([name, , cellOf], index) => {
        const cell = cellOf(row);
        return html`<td class=${`c-${name}`}>${href && index === 0 ? html`<a href=${href} data-row>${cell}</a>` : cell}</td>`;
      })}
    </tr>`;
  };
  return html`<table>
    <caption class="sr-only">${caption}</caption>
    <thead><tr>${columns.map(([name, title]) => html`<th scope="col" class=${`c-${name}`}>${title}</th>`)}</tr></thead>
    <tbody>${rows.map(line)}</tbody>
  </table>`;
}

const placeOf = (/** @type {unknown} */ _row, /** @type {number} */ index) => index;

/** But what can be pressed does its own work, and whoever marks a text wants to copy it. @param {MouseEvent} event @param {string} href */
function open({ target }, href) {
  const isOther = target instanceof Element && target.closest("a, button, input, label");
  if (!isOther && getSelection()?.isCollapsed !== false) location.hash = href;
}
