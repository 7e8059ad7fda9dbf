/** Reads an strace log, written with paths and with all bytes in hexadecimal, as operations on a folder and acknowledgements. */
import { basename, dirname } from "node:path";
import type { Operation } from "./power-disk.ts";
import { callsIn } from "./strace.ts";

/** A 2xx that leaves, by the marker of its delivery. */
export interface Acknowledgement {
  readonly kind: "acknowledged";
  readonly marker: string;
}

/** Whatever can change files is traced, so that a call which is not understood is seen. */
const CHANGING =
  "pwrite64,pwritev,pwritev2,ftruncate,truncate,fallocate,fsync,fdatasync,sync_file_range,unlink,unlinkat";
const NAMING = "openat,rename,renameat,renameat2,link,linkat,copy_file_range,sendfile,msync";
export const RECORDED_CALLS = `${CHANGING},${NAMING},read,readv,write,writev`;
/** Bytes of a call that are shown: more than a page of SQLite. */
export const RECORDING = ["-y", "-xx", "-s", "70000"];

const HEX = (text: string) => Buffer.from(text).toString("hex").replace(/../g, "\\x$&");
const MARKER = new RegExp(`${HEX("row-").replaceAll("\\", "\\\\")}(?:\\\\x3\\d){5}`);
const REPLY = HEX("HTTP/1.1 200");
const IGNORED = /-shm$/;

export class Recording {
  readonly #folder: string;
  readonly #bySocket = new Map<string, string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  async *read(log: string): AsyncGenerator<Operation | Acknowledgement> {
    for await (const call of callsIn(log)) {
      const read = this.#readCall(call);
      if (read !== null) yield read;
    }
  }

  #readCall(line: string): Operation | Acknowledgement | null {
    const [, call = "", rest = ""] = /^\s*(\w+)\((.*)$/s.exec(line) ?? [];
    if (call === "read" || call === "readv") return this.#heard(rest);
    if ((call === "write" || call === "writev") && rest.includes(REPLY)) return this.#answered(rest);
    if (/ = -1 /.test(rest)) return null;
    return this.#changed(call, rest);
  }

  /** A delivery that comes in over a socket. */
  #heard(rest: string): null {
    const marker = MARKER.exec(rest)?.[0];
    if (marker !== undefined) this.#bySocket.set(descriptorOf(rest), decode(marker).toString());
    return null;
  }

  #answered(rest: string): Acknowledgement | null {
    const marker = this.#bySocket.get(descriptorOf(rest));
    return marker === undefined ? null : { kind: "acknowledged", marker };
  }

  #changed(call: string, rest: string): Operation | null {
    if (call === "openat") {
      const path = this.#inFolder(/ = \d+<([^>]*)>\s*$/.exec(rest)?.[1]);
      return path !== null && rest.includes("O_CREAT") ? { kind: "create", path } : null;
    }
    if (call === "unlink") {
      const path = this.#inFolder(/^"([^"]*)"/.exec(rest)?.[1]);
      return path === null ? null : { kind: "remove", path };
    }
    if (call === "rename") {
      const [, from, into] = /^"([^"]*)", "([^"]*)"/.exec(rest) ?? [];
      const [path, to] = [this.#inFolder(from), this.#inFolder(into)];
      return path === null || to === null ? null : { kind: "rename", path, to };
    }
    const hex = /^\d+<([^>]*)>/.exec(rest)?.[1];
    if ((call === "fsync" || call === "fdatasync") && hex !== undefined && decode(hex).toString() === this.#folder) {
      return { kind: "sync_folder" };
    }
    const path = this.#inFolder(hex);
    return path === null || rest.startsWith(">(deleted)", rest.indexOf(">")) ? null : changeOf(call, path, rest);
  }

  /** The file's name, if it is one of the folder that counts: what processes share in memory is made anew at open. */
  #inFolder(hex: string | undefined): string | null {
    if (hex === undefined) return null;
    const path = decode(hex).toString();
    return dirname(path) === this.#folder && !IGNORED.test(path) ? basename(path) : null;
  }
}

/** There is more space around the end of a call that strace showed in two pieces. */
function changeOf(call: string, path: string, rest: string): Operation | null {
  switch (call) {
    case "pwrite64": {
      const [, hex = "", at, written] = /^[^"]*"([^"]*)", \d+, (\d+)\s*\)\s+= (\d+)\s*$/.exec(rest) ?? [];
      const bytes = decode(hex);
      if (at === undefined || Number(written) !== bytes.length) break;
      return { kind: "write", path, at: Number(at), bytes };
    }
    case "ftruncate": {
      const length = /, (\d+)\s*\)\s+= 0\s*$/.exec(rest)?.[1];
      if (length === undefined) break;
      return { kind: "truncate", path, length: Number(length) };
    }
    case "fsync":
    case "fdatasync":
      return { kind: "sync", path };
  }
  throw new Error(`A call changes ${path} in a way that is not understood: ${call}(${rest.slice(0, 200)}`);
}

const descriptorOf = (rest: string) => /^\d+/.exec(rest)?.[0] ?? "";

function decode(hex: string): Buffer {
  return Buffer.from(hex.replaceAll("\\x", ""), "hex");
}
