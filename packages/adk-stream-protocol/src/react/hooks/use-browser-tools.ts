import {
  type UITools,
  type UIMessage,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from 'ai'
import { type RefObject, useEffect } from 'react'
import type { Chat } from '@ai-sdk/react'

import type { AttachedChat } from '../../client/sync/attached-chat.ts'
import {
  type BrowserTools,
  callTool,
  isGated,
  runBrowserTools,
  runCall,
} from '../../client/tools/browser-tools.ts'
import { useLatest } from '../use-stable.ts'
import { type Call, getToolName, isCall } from '../reading/call.ts'

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

interface LocalChat<Message extends UIMessage> {
  readonly chat: Chat<Message>
  /** Undefined if the chat is attached: then `useBrowserTools` runs the tools. */
  readonly results: LocalToolResults | undefined
  readonly tools: BrowserTools | undefined
}

const NO_TOOLS: BrowserTools = {}

/** Runs browser tools in a chat over a plain AI SDK transport. */
export function useLocalBrowserTools<Message extends UIMessage>(
  { chat, results, tools = NO_TOOLS }: LocalChat<Message>,
  last: Message | undefined,
): void {
  const { status } = chat
  useEffect(() => {
    if (!results) return
    results.setTools(tools)
    // The stream may still contain an approval request for this call, and one that broke off may lack it. A server of the AI SDK offers
    // no calls (BT10): its calls run at the end of the stream.
    if (status !== 'ready') return
    // If the next request fails, the chat reports the error.
    for (const call of results.takeCalls(last)) void runTool(chat, call, tools)
  }, [chat, results, tools, status, last])
}

async function runTool<Message extends UIMessage>(
  chat: Chat<Message>,
  call: Call,
  tools: BrowserTools,
): Promise<void> {
  const tool = getToolName(call)
  const { toolCallId } = call
  const run = (): unknown => callTool(tools[tool], call.input as never)
  // The compiler does not know the types of tools that are looked up by name.
  await chat.addToolOutput((await runCall({ tool, toolCallId, run })) as never)
}

/** The browser tool calls of a chat over a plain AI SDK transport, and whether their results are complete. */
export interface LocalToolResults {
  /** For `sendAutomaticallyWhen`: true if every approval has a decision and every browser tool call has a result. */
  readonly areComplete: (chat: { messages: UIMessage[] }) => boolean
  /** Sets the browser tools that the page has now. */
  setTools(tools: BrowserTools): void
  /** Returns the calls of a finished message that the page has to run. Returns each call once. */
  takeCalls(message: UIMessage | undefined): Call[]
}

export function createLocalToolResults(): LocalToolResults {
  const started = new Set<string>()
  let current: BrowserTools = {}
  const isForPage = (call: Call): boolean => {
    const name = getToolName(call)
    const tool = Object.hasOwn(current, name) ? current[name] : undefined
    if (!tool) return false
    if (call.state === 'approval-responded') return call.approval.approved
    return call.state === 'input-available' && !isGated(tool)
  }
  return {
    areComplete: ({ messages }) => {
      const step = lastStep(messages.at(-1))
      if (step.some(isForPage)) return false
      // The server knows the results of its own tools. Only results of the page are sent.
      const hasLocalResult = step.some(({ toolCallId }) => started.has(toolCallId))
      return (
        lastAssistantMessageIsCompleteWithApprovalResponses({ messages }) ||
        (hasLocalResult && lastAssistantMessageIsCompleteWithToolCalls({ messages }))
      )
    },
    setTools: (tools) => {
      current = tools
    },
    takeCalls: (message) => {
      const calls = lastStep(message).filter(
        (call) => isForPage(call) && !started.has(call.toolCallId),
      )
      for (const { toolCallId } of calls) started.add(toolCallId)
      return calls
    },
  }
}

function lastStep(message: UIMessage | undefined): Call[] {
  if (message?.role !== 'assistant') return []
  const start = message.parts.findLastIndex(({ type }) => type === 'step-start')
  return message.parts.slice(start + 1).filter(isCall)
}
