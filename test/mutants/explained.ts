import type { Explained } from "./verdict.ts";
export const EXPLAINED: readonly Explained[] = [];
