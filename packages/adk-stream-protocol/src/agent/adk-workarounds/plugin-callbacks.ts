import { BasePlugin } from '@google/adk'

/**
 * A plugin without the experimental callbacks of ADK 2.0.0. The implementations of `BasePlugin` log a warning, which
 * would appear on every server that uses our plugins.
 */
export class QuietPlugin extends BasePlugin {
  override beforeToolSelection(
    _params: Parameters<BasePlugin['beforeToolSelection']>[0],
  ): ReturnType<BasePlugin['beforeToolSelection']> {
    return Promise.resolve(undefined)
  }

  override beforeContextCompaction(): Promise<void> {
    return Promise.resolve()
  }

  override afterContextCompaction(): Promise<void> {
    return Promise.resolve()
  }
}

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
