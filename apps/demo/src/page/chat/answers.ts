import type { Arguments, Call } from './approval.ts'
import { readCalls } from './approval.ts'
import type { Message } from './message.ts'

/**
 * What was answered in this page and has not been sent yet. Every answer is sent at once and once: a decision that only this page
 * knows would be lost by a reload, and one that is sent whenever it is seen would be sent for ever.
 */
export class Answers {
  readonly #edits = new Map<string, Arguments>()
  readonly #outputs = new Set<string>()
  readonly #isBrowserTool: (call: Call) => boolean

  constructor(isBrowserTool: (call: Call) => boolean) {
    this.#isBrowserTool = isBrowserTool
  }

  /** Remembers what is to run in place of the arguments shown. */
  edit(approvalId: string, args: Arguments | undefined): void {
    if (args) this.#edits.set(approvalId, args)
    else this.#edits.delete(approvalId)
  }

  /** Remembers that a tool has run in this page. */
  addOutput(toolCallId: string): void {
    this.#outputs.add(toolCallId)
  }

  /** Whether the last message holds an answer to send: for `sendAutomaticallyWhen`. */
  readonly areWaiting = ({ messages }: { messages: Message[] }): boolean => {
    const last = messages.at(-1)
    return last?.role === 'assistant' && readCalls(last).some((call) => this.#isUnsent(call))
  }

  /** What goes beside the message that is being sent. */
  take(message: Message | undefined): { readonly edits?: Record<string, Arguments> } {
    const calls = message?.role === 'assistant' ? readCalls(message) : []
    const edits: [string, Arguments][] = []
    for (const { toolCallId, approval } of calls) {
      this.#outputs.delete(toolCallId)
      const edit = approval && this.#edits.get(approval.id)
      if (approval && edit) edits.push([approval.id, edit])
    }
    return edits.length > 0 ? { edits: Object.fromEntries(edits) } : {}
  }

  #isUnsent(call: Call): boolean {
    if (this.#outputs.has(call.toolCallId)) return true
    if (call.state !== 'approval-responded') return false
    // A tool of the browser runs first: decision and output then travel together.
    return !call.approval.approved || !this.#isBrowserTool(call)
  }
}
