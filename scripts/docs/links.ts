/** Links between the documents: what they name must exist, the heading included. */
import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

/** A link to a file of this repository, or to a heading. */
export interface DocumentLink {
  /** `README.md:12`. */
  readonly place: string;
  /** From the root of the repository; a link within a document names the document itself. */
  readonly path: string;
  /** The heading it leads to, as the link writes it; empty when it leads to the whole. */
  readonly anchor: string;
}

const LINK = /\[[^\]]*\]\(([^)\s]+)\)/g;
const FENCED = /^```[\s\S]*?^```/gm;

/** The links of one document that do not leave the repository; those in code are none. */
export function linksOf(file: string, text: string): DocumentLink[] {
  return [...blanked(text).matchAll(LINK)].flatMap(({ 1: target = "", index }) => {
    if (/^[a-z]+:/.test(target)) return [];
    const place = `${file}:${text.slice(0, index).split("\n").length}`;
    const [path = "", anchor = ""] = target.split("#");
    return [{ place, path: path === "" ? file : posix.join(posix.dirname(file), path), anchor }];
  });
}

/** Says of each link that leads nowhere where it is. */
export function lostLinks(root: string, links: readonly DocumentLink[]): string[] {
  return links.flatMap(({ place, path, anchor }) => {
    if (!existsSync(join(root, path))) return [`${place} links to ${path}, which does not exist`];
    if (anchor === "" || anchorsOf(readFileSync(join(root, path), "utf8")).has(anchor)) return [];
    return [`${place} links to #${anchor}, which is no heading of ${path}`];
  });
}

/** As GitHub makes them: the heading in lower case, with hyphens for spaces and without punctuation. */
function anchorsOf(text: string): ReadonlySet<string> {
  const headings = [...blanked(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading.trim().toLowerCase());
  return new Set(headings.map((heading) => heading.replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-")));
}

/** The text with its code emptied, each line in its place. */
function blanked(text: string): string {
  return text
    .replace(FENCED, (code) => code.replace(/[^\n]/g, " "))
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, " "));
}
