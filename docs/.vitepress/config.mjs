// The site of `npm run docs`: the pages of this repository as they are, with the index of docs/README.md as its sidebar.
import { cpSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";

/** Linked from pages, and no pages, such as a Dockerfile. From the root. */
const linkedFiles = new Set();
const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");

export default defineConfig({
  title: "oncehook",
  description: "Receive webhooks in Node.js: verified, stored before you answer, handled once, and in order.",
  srcDir: "..",
  outDir: ".vitepress/dist",
  cacheDir: ".vitepress/cache",
  srcExclude: ["**/node_modules/**", "dist/**", ".build/**", "test/**", "bench/**", "src/**", "tmp/**"],
  rewrites: (page) => asIndex(page),
  cleanUrls: true,
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    config: (md) => md.core.ruler.push("links of the repository", adaptLinks),
  },
  buildEnd: ({ outDir }) => linkedFiles.forEach((file) => cpSync(join(ROOT, file), join(outDir, file))),
  themeConfig: {
    search: { provider: "local" },
    nav: [
      { text: "Documentation", link: "/docs/" },
      { text: "Reference", link: "/docs/reference/" },
      { text: "FAQ", link: "/docs/faq" },
      { text: "Changes", link: "/CHANGELOG" },
    ],
    sidebar: sidebarOf(readFileSync(join(ROOT, "docs/README.md"), "utf8")),
    outline: [2, 3],
  },
});

/** GitHub shows a folder's README.md, the site its index. */
function asIndex(path) {
  return path.replace(/(^|\/)README\.md(?=$|#)/, "$1index.md");
}

function adaptLinks({ tokens, env }) {
  for (const link of tokens.flatMap(({ children }) => children ?? []).filter(({ type }) => type === "link_open")) {
    const href = link.attrGet("href") ?? "";
    link.attrSet("href", asIndex(href));
    if (/^(?:[a-z]+:|#|\/)|\.md(?:#|$)/.test(href)) continue;
    link.attrSet("target", "_blank");
    linkedFiles.add(posix.join(posix.dirname(env.relativePath), href));
  }
}

/** A group for each heading of the index, with the first link of each row. */
function sidebarOf(index) {
  return index
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      text: section.slice(0, section.indexOf("\n")),
      items: [...section.matchAll(/^\| \[([^\]]+)\]\(([^)]+\.md[^)]*)\)/gm)].map(([, text, path]) => ({
        text,
        link: `/${posix.join("docs", asIndex(path)).replace(/(?:index)?\.md(?=$|#)/, "")}`,
      })),
    }));
}
