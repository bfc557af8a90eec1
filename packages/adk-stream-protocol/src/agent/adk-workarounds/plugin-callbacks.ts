import type { Event, PluginManager } from '@google/adk'
import { BasePlugin, createEvent } from '@google/adk'

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
  return EARLY_CALLBACKS.some((name) => hasCallback(plugin, name))
}

/**
 * Saves the callbacks that do nothing for a streamed token. ADK 2.0.0 calls and awaits two callbacks of every plugin for each
 * token, even if no plugin implements them. `plugins` are those of the application. Of ours, only `noteToken` reads tokens.
 */
export function skipTokenCallbacks(
  manager: PluginManager,
  plugins: readonly BasePlugin[],
  noteToken: (event: Event) => void,
): void {
  const runOnEvent = manager.runOnEventCallback.bind(manager)
  if (!plugins.some((plugin) => hasCallback(plugin, 'afterModelCallback')))
    manager.runAfterModelCallback = () => NOTHING
  if (plugins.some((plugin) => hasCallback(plugin, 'onEventCallback'))) return
  manager.runOnEventCallback = (params) => {
    if (!params.event.partial) return runOnEvent(params)
    noteToken(params.event)
    return NOTHING
  }
}

/** Keeps what a plugin has thrown as the cause of the error that ADK throws. ADK 2.0.0 throws an error with its text only. */
export function keepPluginErrors(manager: PluginManager): void {
  // A private method: every callback of every plugin runs in it.
  const { runCallbacks } = manager as unknown as { runCallbacks: RunCallbacks }
  const keeping: RunCallbacks = async (plugins, callback, name) => {
    let failure: unknown
    const call = async (plugin: BasePlugin): Promise<unknown> => {
      try {
        return await callback(plugin)
      } catch (error) {
        failure = error
        throw error
      }
    }
    try {
      return await runCallbacks.call(manager, plugins, call, name)
    } catch (error) {
      throw error instanceof Error ? Object.assign(error, { cause: failure }) : error
    }
  }
  Object.assign(manager, { runCallbacks: keeping })
}

/**
 * Makes an event of the response with which a plugin recovers from an error of the model. ADK 2.0.0 yields the response itself, which
 * has no author and no actions, and which no session can store.
 */
export function completeRecoveries(manager: PluginManager): void {
  const recover = manager.runOnModelErrorCallback.bind(manager)
  manager.runOnModelErrorCallback = async (params) => {
    const response = await recover(params)
    const { agentName: author, invocationId, invocationContext } = params.callbackContext
    const { branch } = invocationContext
    const from = { author, invocationId, ...(branch !== undefined && { branch }) }
    return response && createEvent({ ...response, ...from })
  }
}

type RunCallbacks = (
  plugins: Iterable<BasePlugin>,
  callback: (plugin: BasePlugin) => Promise<unknown>,
  name: string,
) => Promise<unknown>

const NOTHING = Promise.resolve(undefined)

function hasCallback(plugin: BasePlugin, name: keyof BasePlugin): boolean {
  return Reflect.get(plugin, name) !== Reflect.get(BasePlugin.prototype, name)
}
