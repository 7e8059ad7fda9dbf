/** A table of Markdown. */

/** A bar or the end of a line within a cell would end it: both are replaced. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, head.map(() => "---"), ...rows];
  return all
    .map((cells) => `| ${cells.map((cell) => cell.replace(/\s+/g, " ").replaceAll("|", "\\|")).join(" | ")} |`)
    .join("\n");
}
