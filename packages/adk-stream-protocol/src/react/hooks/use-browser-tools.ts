import type { UITools } from 'ai'
import { type RefObject, useEffect } from 'react'

import type { AttachedChat } from '../../client/sync/attached-chat.ts'
import type { BrowserTools } from '../../client/tools/browser-tools.ts'
import { callTool, isGated, runBrowserTools } from '../../client/tools/browser-tools.ts'
import { useLatest } from './use-latest.ts'

/** A chat that is attached, with the types of the tools that its messages have. */
export type TypedAttachedChat<Tools extends UITools> = AttachedChat & {
  /** For the compiler alone: there is nothing in it. */
  readonly '~tools'?: Tools
}

type ToolFunction<Tool extends UITools[string]> = (
  input: Tool['input'],
) => Tool['output'] | PromiseLike<Tool['output']>

/** Functions for tools that run in the page, by name; what they get and give is what the messages say. */
export type BrowserToolsOf<Tools extends UITools> = {
  readonly [Name in keyof Tools]?:
    | ToolFunction<Tools[Name]>
    | { readonly run: ToolFunction<Tools[Name]>; readonly afterApproval: true }
}

/** Runs what the agent asks of the page, each call once and after its approval. The functions may be new ones at every rendering. */
export function useBrowserTools<Tools extends UITools = UITools>(
  attached: TypedAttachedChat<Tools> | undefined,
  tools: BrowserToolsOf<Tools> | undefined,
): void {
  // The input of a tool is that of its own calls.
  const functions = tools as BrowserTools | undefined
  const latest = useLatest(functions)
  const outline = JSON.stringify(outlineOf(functions))
  useEffect(() => {
    if (!attached || outline === '[]') return
    return runBrowserTools(attached, bindTools(outline, latest))
  }, [attached, outline, latest])
}

type Outline = readonly (readonly [name: string, waits: boolean])[]

function outlineOf(tools: BrowserTools = {}): Outline {
  return Object.entries(tools).map(([name, tool]) => [name, isGated(tool)])
}

/** Functions that stay, and call those of the newest rendering. */
function bindTools(outline: string, latest: RefObject<BrowserTools | undefined>): BrowserTools {
  // It was made from an `Outline`.
  const entries = (JSON.parse(outline) as Outline).map(([name, waits]) => {
    const run = (input: never): unknown => callTool(latest.current?.[name], input)
    return [name, waits ? { run, afterApproval: true as const } : run] as const
  })
  return Object.fromEntries(entries)
}
