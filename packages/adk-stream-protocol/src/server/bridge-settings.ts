import type { Bridge } from './bridge.ts'
import type { BridgeSettings } from './options.ts'

/** The settings of the bridges of this process, for commands that describe a bridge. They are not a part of its interface. */
const settingsByBridge = new WeakMap<object, BridgeSettings>()

export function rememberSettings(bridge: Bridge, settings: BridgeSettings): void {
  settingsByBridge.set(bridge, settings)
}

/** Returns the settings of a bridge, or undefined if the value is not a bridge. */
export function findSettings(bridge: unknown): BridgeSettings | undefined {
  return typeof bridge === 'object' && bridge !== null ? settingsByBridge.get(bridge) : undefined
}
