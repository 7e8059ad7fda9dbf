/** A list of rows of one height, so that nothing moves when they change. */
import { html } from "../vendor/htm-preact.js";

/**
 * @template Row
 * @typedef {object} Column
 * @property {string} name of the class `c-…`, which gives it its width
 * @property {string} title
 * @property {(row: Row) => unknown} cell
 * @property {boolean} [lesser] left out where there is little room
 */

/**
 * The first column is the row's link: it opens by Enter, and by a click anywhere in the row.
 *
 * @template Row
 * @param {object} props
 * @param {string} props.caption what the list is, for those who cannot see it
 * @param {readonly Column<Row>[]} props.columns
 * @param {readonly Row[]} props.rows
 * @param {(row: Row, index: number) => string | number} props.keyOf
 * @param {(row: Row) => string | null} [props.hrefOf] none: a row that leads nowhere
 */
export function Table({ caption, columns, rows, keyOf, hrefOf }) {
  return html`<table>
    <caption class="sr-only">${caption}</caption>
    <thead><tr>${columns.map((column) => html`<th key=${column.name} scope="col" class=${classOf(column)}>${column.title}</th>`)}</tr></thead>
    <tbody>
      ${rows.map((row, index) => html`<${TableRow} key=${keyOf(row, index)} columns=${columns} row=${row} href=${hrefOf?.(row) ?? null} />`)}
    </tbody>
  </table>`;
}

/** @template Row @param {{ columns: readonly Column<Row>[], row: Row, href: string | null }} props */
function TableRow({ columns, row, href }) {
  return html`<tr class=${href === null ? "" : "opens"} onClick=${(/** @type {MouseEvent} */ event) => open(event, href)}>
    ${columns.map((column, index) => {
      const cell = column.cell(row);
      const isLink = index === 0 && href !== null;
      return html`<td key=${column.name} class=${classOf(column)}>${isLink ? html`<a href=${href} data-row>${cell}</a>` : cell}</td>`;
    })}
  </tr>`;
}

/** What can be pressed in a row does its own work, and whoever marks a text wants to copy it. */
/** @param {MouseEvent} event @param {string | null} href */
function open(event, href) {
  if (href === null || !(event.target instanceof Element)) return;
  if (event.target.closest("a, button, input, label") !== null || getSelection()?.isCollapsed === false) return;
  location.hash = href;
}

/** @param {Column<any>} column */
function classOf({ name, lesser }) {
  return lesser ? `c-${name} lesser` : `c-${name}`;
}
