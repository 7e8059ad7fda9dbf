/** The few shapes that the charts are made of. Colours are explicit, on a ground of their own, so that any page can show them. */

export const COLOURS = {
  ground: "#ffffff",
  ink: "#1f2328",
  quiet: "#59636e",
  grid: "#d8dee4",
  ours: "#0a5cad",
  others: "#8b949e",
};
const FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif";

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface TextOptions {
  readonly anchor?: "start" | "middle" | "end";
  readonly weight?: "normal" | "bold";
  readonly fill?: string;
  readonly size?: number;
}

export function escapeXml(text: string): string {
  const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replace(/[&<>"]/g, (character) => entities[character] ?? character);
}

/** A whole picture; `title` is what it is called where it cannot be seen. */
export function picture({ width, height }: Size, title: string, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="${FONT}">`,
    `<title>${escapeXml(title)}</title>`,
    `<rect width="${width}" height="${height}" rx="6" fill="${COLOURS.ground}"/>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

export function text(x: number, y: number, content: string, options: TextOptions = {}): string {
  const { anchor = "start", weight = "normal", fill = COLOURS.ink, size = 13 } = options;
  const look = `font-size="${size}" text-anchor="${anchor}" font-weight="${weight}" fill="${fill}"`;
  // Lines of the grid end before the letters.
  const halo = `stroke="${COLOURS.ground}" stroke-width="4" paint-order="stroke"`;
  return `<text x="${round(x)}" y="${round(y)}" ${look} ${halo}>${escapeXml(content)}</text>`;
}

export function bar(box: Size & { readonly x: number; readonly y: number }, fill: string): string {
  const { x, y, width, height } = box;
  return `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="${fill}"/>`;
}

export type Place = readonly [x: number, y: number];

export function line(from: Place, to: Place): string {
  const [[x1, y1], [x2, y2]] = [from.map(round), to.map(round)];
  return `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="${COLOURS.grid}"/>`;
}

export function path(places: readonly Place[], { stroke, dash }: { stroke: string; dash: string }): string {
  const steps = places.map((place, index) => `${index === 0 ? "M" : "L"}${place.map(round).join(" ")}`);
  return `<path d="${steps.join("")}" fill="none" stroke="${stroke}" stroke-width="2.5" stroke-dasharray="${dash}"/>`;
}

export function dot([x, y]: Place, fill: string): string {
  return `<circle cx="${round(x)}" cy="${round(y)}" r="4" fill="${fill}"/>`;
}

/** Round values from 0 to the first that is not below `greatest`, about `count` of them. */
export function ticks(greatest: number, count: number): readonly number[] {
  const raw = Math.max(greatest, Number.MIN_VALUE) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= raw) ?? 10);
  return Array.from({ length: Math.ceil(greatest / step) + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}

/** `12,345`, and `3.2` with its first decimal. */
export function grouped(value: number): string {
  return value.toLocaleString("en-GB", { maximumFractionDigits: 1 });
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
