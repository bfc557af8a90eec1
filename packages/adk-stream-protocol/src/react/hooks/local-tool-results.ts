import type { UIMessage } from 'ai'
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from 'ai'

import { type BrowserTools, isGated } from '../../client/tools/browser-tools.ts'
import { type Call, isCall, nameCall } from '../reading/call.ts'

/** What a page answers in a chat that nobody looks after: one of the AI SDK alone, without the bridge. */
export class LocalToolResults {
  readonly #begun = new Set<string>()
  #tools: BrowserTools = {}

  /** When the AI SDK is to send by itself: all is decided, and what was for the page is done. */
  readonly areComplete = ({ messages }: { messages: UIMessage[] }): boolean => {
    const step = lastStep(messages.at(-1))
    if (step.some((call) => this.#isForPage(call))) return false
    // An output of the server is told by the server. Only the page's own are sent.
    const isOurs = step.some(({ toolCallId }) => this.#begun.has(toolCallId))
    return (
      lastAssistantMessageIsCompleteWithApprovalResponses({ messages }) ||
      (isOurs && lastAssistantMessageIsCompleteWithToolCalls({ messages }))
    )
  }

  /** What the page can do now. */
  use(tools: BrowserTools): void {
    this.#tools = tools
  }

  /** The calls of a message, no longer written, that are for the page to run; each is given once. */
  takeCalls(message: UIMessage | undefined): Call[] {
    const calls = lastStep(message).filter(
      (call) => this.#isForPage(call) && !this.#begun.has(call.toolCallId),
    )
    for (const { toolCallId } of calls) this.#begun.add(toolCallId)
    return calls
  }

  #isForPage(call: Call): boolean {
    const name = nameCall(call)
    const tool = Object.hasOwn(this.#tools, name) ? this.#tools[name] : undefined
    if (!tool) return false
    if (call.state === 'approval-responded') return call.approval.approved
    return call.state === 'input-available' && !isGated(tool)
  }
}

function lastStep(message: UIMessage | undefined): Call[] {
  if (message?.role !== 'assistant') return []
  const start = message.parts.findLastIndex(({ type }) => type === 'step-start')
  return message.parts.slice(start + 1).filter(isCall)
}
