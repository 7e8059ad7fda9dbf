/** A command that does nothing itself and has others under it. */
import { Command } from "commander";

export function commandGroup(name: string, description: string, makes: readonly (() => Command)[]): Command {
  // Said before its commands are added, which take it over: how a mistake ends the process is the program's to decide.
  const group = new Command(name).description(description).exitOverride();
  for (const make of makes) group.addCommand(make().copyInheritedSettings(group));
  return group;
}
