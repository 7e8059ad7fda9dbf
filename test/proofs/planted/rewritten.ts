/** A source as somebody else might write it: without white space and types, and with other names for all local variables. */
import { minifySync, transformSync } from "rolldown/utils";

export function rewritten(text: string): string {
  // Private names are kept by names that are not private meanwhile.
  const source = text.replaceAll(/#(?=[a-z])/g, PRIVATE);
  const { code } = transformSync("source.ts", source, { typescript: { onlyRemoveTypeImports: true } });
  // Functions keep their names: places are found by them.
  const mangle = { toplevel: false, keepNames: true };
  const options = { compress: false, mangle, codegen: { removeWhitespace: true } };
  return minifySync("source.mjs", code, options).code.replaceAll(PRIVATE, "#");
}

const PRIVATE = "PRIVATE_";
