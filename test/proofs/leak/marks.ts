/** Texts that nobody may say: marked secrets, numbers and texts, and how they are found again whatever they were written as. */

const secrets = Array.from({ length: 10 }, (_, index) => `marked-secret-${index}-0123456789abcdef`);
const numbers = Array.from({ length: 12 }, (_, index) => `+1555777${1000 + index}`);
const texts = Array.from({ length: 12 }, (_, index) => `marked text ${index}: "meet me", at dawn\nby the bridge`);
/** What an error of the application's vault or of its database's driver says. */
const details = Array.from({ length: 3 }, (_, index) => `marked-detail-${index}-of-an-error`);
/** What an error of a handler, a hook or a publisher says: the log says it too, without what is personal in it. No word is one of the texts. */
const remarks = Array.from({ length: 3 }, (_, index) => `remark-number-${index}-of-an-error`);

export const MARKS = { secrets, numbers, texts, details, remarks } as const;

export const ALL_MARKS: readonly string[] = Object.values(MARKS).flat();

/** What a person wrote, and who they are: not even an error that is stored may hold it. */
export const PERSONAL_MARKS: readonly string[] = [...numbers, ...texts];

/** What no log may hold. */
export const UNLOGGED_MARKS: readonly string[] = [...PERSONAL_MARKS, ...secrets, ...details];

/** `list[index]`, round and round. */
export function pick<T>(list: readonly T[], index: number): T {
  const found = list[index % list.length];
  if (found === undefined) throw new Error("There is nothing to pick from.");
  return found;
}

/** The marks that `text` holds: as they are, without a plus, as people group them, within JSON, encoded for a URL, in hexadecimal or in Base64. */
export class Finder {
  readonly #pattern: RegExp;

  constructor(marks: readonly string[]) {
    const forms = new Set(marks.flatMap(formsOf));
    this.#pattern = new RegExp([...forms].map((form) => form.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|"), "gi");
  }

  find(text: string): readonly string[] {
    return [...text.matchAll(this.#pattern)].map(([form]) => form);
  }
}

function formsOf(mark: string): string[] {
  const bytes = Buffer.from(mark);
  const encoded = [bytes.toString("hex"), bytes.toString("base64"), bytes.toString("base64url")];
  const quoted = JSON.stringify(mark).slice(1, -1);
  // Logs are JSON, and may hold JSON.
  const twice = JSON.stringify(quoted).slice(1, -1);
  const separated = ["-", ".", "_", " "].map((separator) =>
    mark.replace(/^\+1(\d{3})(\d{3})/, `$1${separator}$2${separator}`),
  );
  // As much as JSON.parse quotes of a text that is not JSON.
  const beginning = mark.includes(" ") ? [mark.slice(0, 10)] : [];
  const firstLine = mark.split(/[:\n]/)[0] ?? mark;
  return [
    mark,
    quoted,
    twice,
    firstLine,
    mark.replace(/^\+/, ""),
    encodeURIComponent(mark),
    ...encoded,
    ...separated,
    ...beginning,
  ];
}
