/** The gate of the code's size: the sum of code lines does not rise without a reason. The other figures are printed and refuse nothing. */
import { CODE_LINES, line, measure, problemOf, writtenDown } from "../house/measure.ts";
import type { Gate } from "./gate.ts";

export const house: Gate = {
  name: "house",
  run({ root }) {
    const figures = measure(root);
    const before = writtenDown(root);
    const problem = problemOf(figures, before);
    const sum = figures.find(({ name }) => name === CODE_LINES)?.value ?? 0;
    const notes = figures.map((figure) => line(figure, before[figure.name]));
    const problems = problem === null ? [] : [problem];
    return Promise.resolve([{ name: `house: ${CODE_LINES}`, count: sum, unit: "lines", problems, notes }]);
  },
};
