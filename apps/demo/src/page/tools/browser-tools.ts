import { getToolName } from 'ai'

import type { Call } from '../chat/approval.ts'
import { changeBgm } from './change-bgm.ts'
import { getLocation } from './get-location.ts'

/** A tool that runs in this page; what it throws is told to the model in the words of the error. */
export type BrowserTool = (input: unknown) => Promise<Record<string, unknown>>

const TOOLS: ReadonlyMap<string, BrowserTool> = new Map([
  ['get_location', getLocation],
  ['change_bgm', changeBgm],
])

export function isBrowserTool(call: Call): boolean {
  return TOOLS.has(getToolName(call))
}

export function findBrowserTool(call: Call): BrowserTool | undefined {
  return TOOLS.get(getToolName(call))
}
