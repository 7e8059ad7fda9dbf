/** The help of the commands for captured requests, for deliveries and sends by hand, for the inspector and the receiver without code. */
import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { inspectCommand } from "../../../src/tools/cli/inspect.ts";
import { listenCommand } from "../../../src/tools/cli/listen.ts";
import { sendCommand } from "../../../src/tools/cli/send.ts";
import { triggerCommand } from "../../../src/tools/cli/trigger.ts";
import { verifyCommand } from "../../../src/tools/cli/verify/command.ts";

function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({ getOutHelpWidth: () => 120, writeOut: (part) => (text += part) }).outputHelp();
  return text;
}

describe.each([
  ["verify", verifyCommand],
  ["trigger", triggerCommand],
  ["send", sendCommand],
  ["inspect", inspectCommand],
  ["listen", listenCommand],
])("the help of oncehook %s", (_, make) => {
  it("is as it was", () => {
    expect(helpOf(make())).toMatchSnapshot();
  });
});
