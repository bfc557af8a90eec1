import { BasePlugin } from '@google/adk'

/** The plugin callbacks that ADK calls before an agent runs. Each of them may end the run or change its message. */
const EARLY_CALLBACKS = [
  'onUserMessageCallback',
  'beforeRunCallback',
] as const satisfies (keyof BasePlugin)[]

/** Whether a plugin can affect a run before its tools are called. */
export function hasEarlyCallbacks(plugin: BasePlugin): boolean {
  return EARLY_CALLBACKS.some(
    (name) => Reflect.get(plugin, name) !== Reflect.get(BasePlugin.prototype, name),
  )
}
