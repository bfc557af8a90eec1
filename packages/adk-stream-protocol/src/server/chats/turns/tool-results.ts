import { asBrowserTool, BROWSER_TIMED_OUT } from '../../../calls/browser-tool.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { OutputResponse } from '../../../protocol/read-responses.ts'
import type { ChatRef } from '../../../shared/chat-ref.ts'
import { defer } from '../../../shared/async.ts'
import type { BrowserCall } from '../../../store/store.ts'
import type { Turn } from '../../../turns/turn.ts'
import type { LazyBackend } from '../backend.ts'
import { toAppChat } from '../backend.ts'
import type { StoredCalls } from './stored-calls.ts'
import { refuseForeignOutput } from './turn-responses.ts'
import type { TurnService } from './turn-service.ts'

export interface ToolResultsParts {
  readonly backend: LazyBackend
  readonly calls: StoredCalls
  readonly turnService: Pick<TurnService, 'resume'>
}

/** Resumes turns, without a reader, with results of tools that do not run in the agent. */
export class ToolResults {
  readonly #parts: ToolResultsParts

  constructor(parts: ToolResultsParts) {
    this.#parts = parts
  }

  /** Submits the result of a browser tool. Throws if no call waits for this result. */
  async submit(chat: ChatRef, output: OutputResponse): Promise<void> {
    const { calls, turnService } = this.#parts
    const backend = await this.#parts.backend.get()
    const found = await calls.find(chat, output.toolCallId)
    const key = toAppChat(backend, chat)
    const tool = found && (await backend.findTool(key, found.call.toolName))
    const isBrowserTool = tool !== undefined && asBrowserTool(tool) !== undefined
    const isWaiting = found?.call.state === 'waiting'
    // BT3: only the application completes other long-running tools.
    if (found && !isBrowserTool && (isWaiting || tool?.isLongRunning))
      throw refuseForeignOutput(found.call)
    if (!isWaiting || !isBrowserTool)
      throw new ProtocolError('nothing-new', { message: 'No call waits for this output.' })
    await turnService.resume(chat, found.messageId, { outputs: [output], background: true })
  }

  /** Ends the call of a browser tool that timed out. Does nothing if the result has arrived meanwhile. */
  async expire(call: BrowserCall): Promise<void> {
    const { chat, messageId, toolCallId } = call
    const { calls, turnService } = this.#parts
    const backend = await this.#parts.backend.get()
    if (!(await backend.agents.has(chat))) return
    if ((await calls.stateOf(call)) === 'waiting') {
      const outputs = [{ toolCallId, result: { errorText: BROWSER_TIMED_OUT } }]
      const turn = await turnService.resume(chat, messageId, { outputs, background: true })
      await turn.settled
      // The server is closing. The next one expires the call.
      if (turn.signal.aborted) return
    }
    await backend.browserCalls.drop(chat, [toolCallId])
  }

  /**
   * Completes a long-running call with its final result. Resolves when the result is stored; the model then continues without a
   * reader.
   */
  async complete(chat: ChatRef, result: OutputResponse): Promise<Turn> {
    const { calls, turnService } = this.#parts
    const found = await calls.findAfterTurn(chat, result.toolCallId)
    if (!found) throw new ProtocolError('unknown-call')
    const stored = defer()
    const completion = { ...result, onStored: stored.resolve }
    const responses = { outputs: [], background: true, completion }
    const turn = await turnService.resume(chat, found.messageId, responses)
    await Promise.race([stored.promise, turn.settled])
    const after = await calls.find(chat, result.toolCallId)
    // The turn was stopped, or the server is closing, before the result was stored.
    if (!after?.call.completed) throw new ProtocolError('unavailable')
    return turn
  }
}
