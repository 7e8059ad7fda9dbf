/** Takes the framing of `Transfer-Encoding: chunked` off a body, as a capture of the wire has it. */
import { Buffer } from "node:buffer";

const LINE_END = "\r\n";

/** The content of all chunks; null when the bytes are not made of whole chunks. */
export function dechunked(bytes: Buffer): Buffer | null {
  const parts: Buffer[] = [];
  for (let position = 0; ; ) {
    const lineEnd = bytes.indexOf(LINE_END, position, "latin1");
    const [, digits] =
      /^([\da-f]{1,8})(?:;.*)?$/i.exec(bytes.toString("latin1", position, Math.max(position, lineEnd))) ?? [];
    if (digits === undefined) return null;
    const start = lineEnd + LINE_END.length;
    const end = start + Number.parseInt(digits, 16);
    if (end === start) return Buffer.concat(parts);
    if (bytes.toString("latin1", end, end + LINE_END.length) !== LINE_END) return null;
    parts.push(bytes.subarray(start, end));
    position = end + LINE_END.length;
  }
}
