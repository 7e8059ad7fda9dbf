/** The checks that every option goes through. */
import { describe, expect, it } from "vitest";
import { SetupError } from "../../src/errors.ts";
import {
  booleanOption,
  choiceOption,
  functionOption,
  invalidOption,
  isAbortSignal,
  numberOption,
  refuseUnknownOptions,
  suggestion,
  textOption,
} from "../../src/internal/options.ts";

const bounds = { min: 1, max: 10, unit: "ms" };

function thrownBy(run: () => unknown): SetupError {
  try {
    run();
  } catch (error) {
    if (error instanceof SetupError) return error;
  }
  throw new Error("No SetupError was thrown.");
}

describe("refuseUnknownOptions()", () => {
  it("passes over known ones, also when they are undefined", () => {
    expect(() => refuseUnknownOptions("make", { a: undefined, b: 1 }, ["a", "b"])).not.toThrow();
    expect(() => refuseUnknownOptions("make", {}, [])).not.toThrow();
  });

  it.each([null, undefined, 5, "text", [], ["a"]])("refuses %j as options", (value) => {
    const error = thrownBy(() => refuseUnknownOptions("make", value, ["a"]));
    expect(error).toMatchObject({ code: "invalid_option", message: "make takes an options object." });
  });

  it("names the likely option, whatever the case", () => {
    const error = thrownBy(() => refuseUnknownOptions("make", { TIMEOUTms: 1 }, ["retries", "timeoutMs"]));
    expect(error.message).toBe('make has no option "TIMEOUTms". Did you mean "timeoutMs"?');
    expect(error).toMatchObject({ code: "invalid_option", fields: { option: "TIMEOUTms" } });
  });
});

describe("suggestion()", () => {
  it.each([
    ["secret", 'Did you mean "secrets"?'],
    ["scerets", 'Did you mean "secrets"?'],
    ["stor", 'Did you mean "store"?'],
    ["zzzzzz", "Known: secrets, store."],
    ["", "Known: secrets, store."],
  ])("for %j says %s", (word, said) => {
    expect(suggestion(word, ["secrets", "store"])).toBe(said);
  });

  it("bears more mistakes in a longer word", () => {
    expect(suggestion("handleTimeMs", ["handlerTimeoutMs"])).toBe('Did you mean "handlerTimeoutMs"?');
  });

  it("takes the closest of several", () => {
    expect(suggestion("batchs", ["batch", "bath", "batches"])).toBe('Did you mean "batch"?');
  });
});

describe("numberOption()", () => {
  it("gives the value within its bounds, and the default for undefined alone", () => {
    expect([1, 10, undefined].map((value) => numberOption("n", value, 3, bounds))).toEqual([1, 10, 3]);
  });

  it.each([0, 11, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "5", null, true, 5n])("refuses %s", (value) => {
    const error = thrownBy(() => numberOption("n", value, 3, bounds));
    expect(error.message).toMatch(/^Option "n" must be a whole number from 1 to 10 ms; it is /);
  });

  it("takes fractions where they are allowed", () => {
    expect(numberOption("n", 1.5, 3, { ...bounds, integer: false })).toBe(1.5);
    for (const wrong of [0.5, "5"]) {
      const error = thrownBy(() => numberOption("n", wrong, 3, { ...bounds, integer: false }));
      expect(error.message).toContain("a number from");
    }
  });
});

describe("choiceOption()", () => {
  it("gives a choice or the default, and names the choices else", () => {
    expect(choiceOption("c", "b", "a", ["a", "b"])).toBe("b");
    expect(choiceOption("c", undefined, "a", ["a", "b"])).toBe("a");
    const error = thrownBy(() => choiceOption("c", "the-secret", "a", ["a", "b"]));
    expect(error.message).toBe('Option "c" must be one of "a", "b"; it is string.');
  });
});

describe("textOption(), booleanOption() and functionOption()", () => {
  const call = () => 1;

  it("give what they are given, and their default for undefined alone", () => {
    expect([textOption("t", "a"), textOption("t", undefined)]).toEqual(["a", undefined]);
    expect([true, false, undefined].map((value) => booleanOption("b", value, true))).toEqual([true, false, true]);
    expect([functionOption("f", call), functionOption("f", undefined)]).toEqual([call, undefined]);
  });

  it.each<[() => unknown, string]>([
    [() => textOption("t", ""), 'Option "t" must be a text that is not empty; it is string.'],
    [() => textOption("t", 5), 'Option "t" must be a text that is not empty; it is a number.'],
    [() => textOption("t", null), 'Option "t" must be a text that is not empty; it is null.'],
    [() => booleanOption("b", "true", true), 'Option "b" must be true or false; it is string.'],
    [() => booleanOption("b", null, true), 'Option "b" must be true or false; it is null.'],
    [() => functionOption("f", "call"), 'Option "f" must be a function; it is string.'],
    [() => functionOption("f", null), 'Option "f" must be a function; it is null.'],
  ])("refuse anything else (%#)", (check, message) => {
    expect(thrownBy(check)).toMatchObject({ code: "invalid_option", message });
  });
});

describe("invalidOption()", () => {
  it("names the option for programs too, under the code that it is given", () => {
    expect(invalidOption("o", "is wrong")).toMatchObject({ code: "invalid_option", fields: { option: "o" } });
    expect(invalidOption("o", "is wrong", 5, "invalid_secret").code).toBe("invalid_secret");
  });

  it.each([
    [5, "5"],
    [false, "false"],
    [null, "null"],
    [undefined, "undefined"],
    ["a text that may be a secret", "string"],
    [{ secret: 1 }, "object"],
    [() => 1, "function"],
  ])("shows %s as %s: never a text", (value, shown) => {
    expect(invalidOption("o", "is wrong", value).message).toBe(`Option "o" is wrong; it is ${shown}.`);
  });
});

const whole = { aborted: false, addEventListener() {}, throwIfAborted() {} };

describe("isAbortSignal()", () => {
  it.each([
    ["a signal", new AbortController().signal],
    ["one that has aborted", AbortSignal.abort()],
    ["another implementation", whole],
  ])("takes %s", (_, value) => {
    expect(isAbortSignal(value)).toBe(true);
  });

  it.each([
    ["undefined", undefined],
    ["null", null],
    ["a number", 7],
    ["an empty object", {}],
    ["the controller", new AbortController()],
    ["another event target", new EventTarget()],
    ["one that does not tell whether it has aborted", { ...whole, aborted: undefined }],
    ["one that takes no listeners", { ...whole, addEventListener: undefined }],
    ["one that cannot throw its reason", { ...whole, throwIfAborted: undefined }],
  ])("refuses %s", (_, value) => {
    expect(isAbortSignal(value)).toBe(false);
  });
});
