import type { UITools } from 'ai'
import { type RefObject, useEffect } from 'react'

import type { AttachedChat } from '../../client/sync/attached-chat.ts'
import type { BrowserTools } from '../../client/tools/browser-tools.ts'
import { callTool, isGated, runBrowserTools } from '../../client/tools/browser-tools.ts'
import { useLatest } from './use-stable.ts'

/** An attached chat with the tool types of its messages. */
export type TypedAttachedChat<Tools extends UITools> = AttachedChat & {
  /** Carries the type. Never set. */
  readonly '~tools'?: Tools
}

type ToolFunction<Tool extends UITools[string]> = (
  input: Tool['input'],
) => Tool['output'] | PromiseLike<Tool['output']>

/** Functions of browser tools by name, with the input and output types of the messages. */
export type BrowserToolsOf<Tools extends UITools> = {
  readonly [Name in keyof Tools]?:
    | ToolFunction<Tools[Name]>
    | { readonly run: ToolFunction<Tools[Name]>; readonly afterApproval: true }
}

/** Runs the browser tool calls of a chat, each once and after its approval. `tools` may be a new object at every render. */
export function useBrowserTools<Tools extends UITools = UITools>(
  attached: TypedAttachedChat<Tools> | undefined,
  tools: BrowserToolsOf<Tools> | undefined,
): void {
  // Each tool receives the input of its own calls.
  const functions = tools as BrowserTools | undefined
  const latest = useLatest(functions)
  const list = JSON.stringify(listTools(functions))
  useEffect(() => {
    if (!attached || list === '[]') return
    return runBrowserTools(attached, bindTools(list, latest))
  }, [attached, list, latest])
}

type ToolList = readonly (readonly [name: string, isGated: boolean])[]

function listTools(tools: BrowserTools = {}): ToolList {
  return Object.entries(tools).map(([name, tool]) => [name, isGated(tool)])
}

/** Returns stable functions that call those of the latest render. */
function bindTools(list: string, latest: RefObject<BrowserTools | undefined>): BrowserTools {
  // Serialised from a `ToolList` above.
  const entries = (JSON.parse(list) as ToolList).map(([name, gated]) => {
    const run = (input: never): unknown => callTool(latest.current?.[name], input)
    return [name, gated ? { run, afterApproval: true as const } : run] as const
  })
  return Object.fromEntries(entries)
}
