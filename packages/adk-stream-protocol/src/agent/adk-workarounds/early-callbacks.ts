import { BasePlugin } from '@google/adk'

/** What ADK asks of a plugin before an agent runs; each of these may end the run or change its message. */
const EARLIER = [
  'onUserMessageCallback',
  'beforeRunCallback',
] as const satisfies (keyof BasePlugin)[]

/** Whether a plugin has a say in a run before its tools are called. */
export function hasEarlyCallbacks(plugin: BasePlugin): boolean {
  return EARLIER.some(
    (name) => Reflect.get(plugin, name) !== Reflect.get(BasePlugin.prototype, name),
  )
}
