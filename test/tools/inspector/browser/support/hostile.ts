/** 500 texts that run as a program in a page which takes a text for something else. Each would set `window.hacked`. */

/** How many distinct ones there are. */
export const HOSTILE_COUNT = 500;

const RUN = "window.hacked=1";
const EVENTS = ["onload", "onerror", "onclick", "onmouseover", "onfocus", "ontoggle", "onbegin", "onanimationstart"];
const TAGS = [
  "img src=x",
  "svg",
  "body",
  "iframe",
  "video",
  "details open",
  "input autofocus",
  "marquee",
  "object data=x",
];

/** The same list in each run. */
export function hostileTexts(): readonly string[] {
  const distinct = [
    ...new Set([...withPayloads(), ...handlers(), ...addresses(), ...breaks(), ...shapes(), ...unicode()]),
  ];
  if (distinct.length < HOSTILE_COUNT) throw new Error(`There are only ${distinct.length} hostile texts.`);
  // Of every family, whatever its size.
  const step = distinct.length / HOSTILE_COUNT;
  return Array.from({ length: HOSTILE_COUNT }, (_, index) => distinct[Math.floor(index * step)] ?? "");
}

/** A tag whose content is run. */
function withPayloads(): string[] {
  const programs = [
    RUN,
    `eval('${RUN}')`,
    `top.${RUN}`,
    `setTimeout("${RUN}")`,
    "import('data:text/javascript,top.hacked=1')",
  ];
  const wrappers = [
    (code: string) => `<script>${code}</script>`,
    (code: string) => `<SCRIPT type=module>${code}</SCRIPT>`,
    (code: string) => `<scr<script>ipt>${code}</scr</script>ipt>`,
    (code: string) => `<script src="data:text/javascript,${encodeURIComponent(code)}"></script>`,
    (code: string) => `<svg><script>${code}</script></svg>`,
    (code: string) => `<svg><script href="data:text/javascript,${encodeURIComponent(code)}"/></svg>`,
    (code: string) => `<math><mtext></form><form><mglyph><style></math><script>${code}</script>`,
    (code: string) => `<iframe srcdoc="&lt;script&gt;parent.${code}&lt;/script&gt;">`,
    (code: string) => `<style>@import 'javascript:${code}';</style>`,
    (code: string) => `<noscript><p title="</noscript><script>${code}</script>">`,
    (code: string) => `<template><script>${code}</script></template>`,
    (code: string) => `<!--<img src="--><script>${code}</script>">`,
    (code: string) => `<![CDATA[><script>${code}</script>]]>`,
    (code: string) => `</title></textarea></style></script><script>${code}</script>`,
  ];
  return programs.flatMap((code) => wrappers.map((wrap) => wrap(code)));
}

/** A tag with an attribute that is run, in several spellings. */
function handlers(): string[] {
  const spellings = [
    (tag: string, event: string) => `<${tag} ${event}=${RUN}>`,
    (tag: string, event: string) => `"><${tag} ${event}="${RUN}">`,
    (tag: string, event: string) => `'/><${tag.replace(" ", "/")}/${event.toUpperCase()}='${RUN}'//`,
    (tag: string, event: string) => `<${tag}\n${event}\t=\n"${RUN}"\u0000>`,
  ];
  return TAGS.flatMap((tag) => EVENTS.flatMap((event) => spellings.map((spell) => spell(tag, event))));
}

/** Addresses that are run when they are followed or loaded. */
function addresses(): string[] {
  const schemes = [
    `javascript:${RUN}`,
    `JaVaScRiPt:${RUN}`,
    `\u0001javascript:${RUN}`,
    `java\tscript:${RUN}`,
    `java\nscript:${RUN}`,
    `&#106;avascript:${RUN}`,
    `&#x6A;avascript&colon;${RUN}`,
    `javascript://example.com/%0a${RUN}`,
    `data:text/html,<script>parent.${RUN}</script>`,
    `data:text/html;base64,${Buffer.from(`<script>parent.${RUN}</script>`).toString("base64")}`,
    `vbscript:${RUN}`,
    `blob:${RUN}`,
    `//elsewhere.test/${RUN}`,
  ];
  const places = [
    (url: string) => url,
    (url: string) => `<a href="${url}">x</a>`,
    (url: string) => `<iframe src="${url}">`,
    (url: string) => `<form action="${url}"><button>x</button></form>`,
    (url: string) => `<svg><a xlink:href="${url}"><text>x</text></a></svg>`,
    (url: string) => `<meta http-equiv=refresh content="0;url=${url}">`,
    (url: string) => `<link rel=stylesheet href="${url}">`,
    (url: string) => `<base href="${url}">`,
    (url: string) => `<object data="${url}"></object><embed src="${url}">`,
    (url: string) => `[x](${url})`,
  ];
  return schemes.flatMap((url) => places.map((place) => place(url)));
}

/** Ways out of a template, a script, an attribute, JSON or a line of a stream. */
function breaks(): string[] {
  const expressions = [RUN, `constructor.constructor('${RUN}')()`, `self['eval']('${RUN}')`];
  const around = [
    ["${", "}"],
    ["`+", "+`"],
    ["{{", "}}"],
    ["<%=", "%>"],
    ["#{", "}"],
    ["';", "//"],
    ['";', "//"],
    ['\\";', "//"],
    ["');", "//"],
    ["*/", "/*"],
    ["\n\ndata: <script>", "</script>\n\n"],
    ["\r\n\r\n<script>", "</script>"],
    ["</script><script>", "//"],
    ["]]><script>", "</script>"],
    ["expression(", ")"],
    ["url(javascript:", ")"],
    ["\u2028", "\u2029"],
    ["<!--", "-->"],
    ["<${", "} />"],
  ];
  return expressions.flatMap((code) => around.map(([before, after]) => `${before}${code}${after}`));
}

/** Texts that would be elements or properties if somebody parsed them, and names that objects take for their own. */
function shapes(): string[] {
  const props = [
    { dangerouslySetInnerHTML: { __html: `<img src=x onerror=${RUN}>` } },
    { innerHTML: `<img src=x onerror=${RUN}>` },
    { onclick: RUN, href: `javascript:${RUN}` },
    { srcdoc: `<script>parent.${RUN}</script>` },
    { is: "x-a", style: `background:url(javascript:${RUN})`, ref: RUN, key: RUN },
  ];
  const elements = props.flatMap((one) => [
    { type: "div", props: one, key: null, ref: null, constructor: null },
    { type: "script", props: { ...one, children: RUN }, __v: 1, __k: null },
    { tag: "iframe", attributes: one, children: [RUN] },
    ["div", one, RUN],
    { $$typeof: "Symbol(react.element)", type: "img", props: one },
  ]);
  const names = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "then", "valueOf", "__html"];
  return [...elements, ...props]
    .map((one) => JSON.stringify(one))
    .concat(
      names,
      names.map((name) => `{"${name}":{"__html":"<img src=x onerror=${RUN}>"}}`),
    );
}

/** Letters that are turned into < and > by somebody who is too helpful, and ones that turn a text around. */
function unicode(): string[] {
  const pairs = [
    ["\uff1c", "\uff1e"],
    ["\u2039", "\u203a"],
    ["\u00bc", "\u00be"],
    ["%3C", "%3E"],
    ["%253C", "%253E"],
    ["&lt;", "&gt;"],
    ["&#60", "&#62"],
    ["&#x3c;", "&#x3e;"],
    ["\\u003c", "\\u003e"],
    ["\\x3c", "\\x3e"],
    ["+ADw-", "+AD4-"],
    ["\u0000<", ">"],
    ["\u202e<", ">"],
    ["\ufeff<", ">"],
    ["\ud800<", ">"],
    ["<\u200d", "\u200d>"],
    ["\u001b]8;;<", ">\u0007"],
  ];
  const elements = [`script>${RUN}</script`, `img src=x onerror=${RUN}`, `svg onload=${RUN}`];
  return pairs.flatMap(([open = "", close = ""]) =>
    elements.map((element) => `${open}${element.replace("</", `${close}${open}/`).replace(/>(?!$)/, close)}${close}`),
  );
}
