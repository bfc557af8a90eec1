import { randomUUID } from 'node:crypto'

import type { BaseSessionService, Event, Session } from '@google/adk'
import { createEvent } from '@google/adk'
import type { ElicitRequest, ElicitResult } from '@modelcontextprotocol/sdk/types.js'

import { wrapRun } from '../agent/adk-workarounds/guard-tool.ts'
import type { ElicitFault } from '../agent/adk-workarounds/mcp-sessions.ts'
import { callMcpTool, readMcpTool } from '../agent/adk-workarounds/mcp-sessions.ts'
import { describeEnding, toNestedEnding } from '../agent/call-responses.ts'
import type { EventNotes } from '../agent/history/event-notes.ts'
import { writeNotes } from '../agent/history/event-notes.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { chatOf } from '../agent/tool-call.ts'
import type { Approval } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { isRefusal } from '../approvals/approval.ts'
import { toAskedNote } from './approval-events.ts'
import type { TermsOptions } from './call-terms.ts'
import { resolveQuestionTerms, readToolClaims } from './call-terms.ts'
import type { ElicitationRequest } from './question-terms.ts'
import { ELICITATION_CALL, readElicitation } from './question-terms.ts'
import type { RunState } from './run-state.ts'

interface ElicitationsOptions extends TermsOptions {
  readonly ledger: Ledger
}

/** Where the questions of a call are shown: the run and the session of the chat. */
interface Place {
  readonly call: ToolCall
  readonly run: RunState
  readonly session: Session
  /** Undefined in a live session, which stores its events itself. */
  readonly sessions: BaseSessionService | undefined
  readonly author: Pick<Event, 'invocationId' | 'author' | 'branch'>
  /** How many questions the call has asked. */
  asked: number
}

/** A server that asks more often during one call is refused. */
const MAX_QUESTIONS = 20

/** How often the ledger is read for a decision that another process recorded, in ms. */
const POLL_MS = 1_000

const REASONS = {
  stopped: 'the call was stopped',
  failed: 'the server could not ask it',
  unwanted: 'the server that asked does not wait any more',
} as const

/** Asks people what MCP servers want to know during a call. The call waits in this process until the answer arrives. */
export class Elicitations {
  readonly #options: ElicitationsOptions

  constructor(options: ElicitationsOptions) {
    this.#options = options
  }

  /** Lets the MCP server of a call ask questions while the call runs. Does nothing for other tools. */
  prepare(call: ToolCall, run: RunState): void {
    const { tool, toolArgs: args, toolContext } = call
    const mcpTool = readMcpTool(tool)
    const place = mcpTool && findPlace(call, run)
    if (!place) return
    wrapRun(toolContext, this, () =>
      callMcpTool(mcpTool, {
        args,
        signal: toolContext.abortSignal,
        elicit: (params, signal) => this.#elicitNext(place, params, signal),
      }),
    )
  }

  /** Asks when the previous question of the run has ended: the stream ends at a question, so a client can show one. */
  async #elicitNext(
    place: Place,
    params: ElicitRequest['params'],
    signal: AbortSignal,
  ): Promise<ElicitResult | ElicitFault> {
    const { elicitations, live } = rootOf(place.run)
    const ended = live ? AbortSignal.any([signal, live.elicitation.signal]) : signal
    const asked = elicitations.last.then(() =>
      ended.aborted ? CANCEL : this.#elicit(place, params, ended),
    )
    elicitations.last = asked.catch(() => undefined)
    return asked
  }

  async #elicit(
    place: Place,
    params: ElicitRequest['params'],
    signal: AbortSignal,
  ): Promise<ElicitResult | ElicitFault> {
    const request = readElicitation(params)
    if ('fault' in request) return { fault: `Nobody was asked: ${request.fault}` }
    place.asked += 1
    if (place.asked > MAX_QUESTIONS)
      return { fault: `Nobody was asked: one call may ask at most ${MAX_QUESTIONS} questions.` }
    const question = await this.#request(place, request)
    if (!question)
      return { fault: 'Nobody was asked: too many questions wait for an answer. Ask later.' }
    try {
      const { elicitation: live } = rootOf(place.run).live ?? {}
      await show(place, { elicited: [toElicited(place, question)] })
      live?.onStateChange('asked')
      const ended = await this.#untilEnded(place, question, signal)
      live?.onStateChange('ended')
      await this.#report(place, ended)
      return toResult(ended, request)
    } catch (error) {
      // The conversation or the ledger cannot be written, for example because another process has taken over the chat.
      this.#options.onError(error)
      await this.#options.ledger.cancel(question.id, REASONS.failed)
      return CANCEL
    }
  }

  /** Stores the question in the ledger before clients see it. */
  async #request(
    { call, run, session }: Place,
    request: ElicitationRequest,
  ): Promise<Approval | undefined> {
    const { message, mode } = request
    const toolCallId = `${call.toolContext.functionCallId}.elicitation.${randomUUID()}`
    const claims = readToolClaims(call.tool)
    // The owner of the chat is asked, whoever approves calls of the tool.
    const { live } = rootOf(run)
    const deadline = live && { deadlineMs: live.deadlineMs }
    const asks = { ...this.#options, policy: {}, ...deadline }
    const resolved = await resolveQuestionTerms(call, { hint: message }, asks)
    if (!resolved) return undefined
    // The title of the tool is not that of its question.
    const { title: _title, ...asked } = resolved
    const { deadlineMs, ...terms } = toTerms(asked, request, claims?.server ?? call.tool.name)
    const question = await this.#options.ledger.request({
      chat: chatOf(session),
      messageId: run.messageId,
      toolCallId,
      toolName: ELICITATION_CALL,
      args: {
        ...(claims?.server !== undefined && { server: claims.server }),
        tool: call.tool.name,
        mode,
        message,
        ...(request.mode === 'url' && { url: request.url, host: request.host }),
      },
      terms: { ...terms, ...(run.nested && { path: run.nested.path }) },
      deadlineMs,
      // The call that asks runs in this process.
      live: true,
    })
    return isRefusal(question) ? undefined : question
  }

  /** Waits for the end of a question. Cancels it if the call does not wait any more. */
  async #untilEnded(place: Place, question: Approval, signal: AbortSignal): Promise<Approval> {
    const { ledger } = this.#options
    const { abortSignal } = place.call.toolContext
    const stopped = AbortSignal.any([signal, ...(abortSignal ? [abortSignal] : [])])
    const decided = await untilDecided(ledger, question, stopped)
    if (stopped.aborted) {
      const reason = abortSignal?.aborted ? REASONS.stopped : REASONS.unwanted
      const cancelled = await ledger.cancel(question.id, reason)
      return isRefusal(cancelled) ? decided : cancelled
    }
    const { id, state } = decided
    if (state.name !== 'approved') return decided
    const claimed = await ledger.claim(id, question)
    const ended = isRefusal(claimed) ? claimed : await ledger.succeed(id, state.payload ?? null)
    return isRefusal(ended) ? decided : ended
  }

  /** Shows in the conversation how a question ended. The end of a stopped turn has shown it. */
  async #report(place: Place, ended: Approval): Promise<void> {
    const { toolCallId: id, toolName: name, chat } = ended
    const ending = describeEnding(ended)
    if (ending && !place.call.toolContext.abortSignal?.aborted) {
      const event = toNestedEnding({ id, name, response: ending.response }, ending.note)
      await show(place, { nested: { session: ended.id, event } })
    }
    await this.#options.ledger.markReported(chat, [id])
  }
}

const CANCEL: ElicitResult = { action: 'cancel' }

/** Returns the run of the chat's agent. */
function rootOf(run: RunState): RunState {
  return run.nested?.root.run ?? run
}

function findPlace(call: ToolCall, run: RunState): Place | undefined {
  const { invocationContext, agentName, functionCallId } = call.toolContext
  const { invocationId, branch, session, sessionService: sessions } = invocationContext
  const root = run.nested?.root
  if (functionCallId === undefined) return undefined
  if (root) return { call, asked: 0, ...root, run }
  const author = { invocationId, author: agentName, ...(branch !== undefined && { branch }) }
  return sessions || run.live ? { call, run, session, sessions, author, asked: 0 } : undefined
}

/** Stores an event without content in the session of the chat, and shows it while the call runs. */
async function show(place: Place, notes: EventNotes): Promise<void> {
  const { run, session, sessions, author } = place
  const customMetadata = writeNotes({ messageId: run.messageId, ...notes })
  const event = createEvent({ ...author, customMetadata })
  const root = rootOf(run)
  if (root.live) return root.live.elicitation.show(event)
  await sessions?.appendEvent({ session, event })
  root.show(event)
}

function toTerms(terms: ResolvedTerms, request: ElicitationRequest, by: string): ResolvedTerms {
  return {
    ...terms,
    kind: 'elicitation',
    title: `Question from ${by}`,
    ...(request.mode === 'form' && { schema: request.schema }),
    idempotent: false,
  }
}

function toElicited(
  { call }: Place,
  question: Approval,
): NonNullable<EventNotes['elicited']>[number] {
  const { toolName, args } = question
  const madeBy = call.toolContext.functionCallId ?? ''
  return { ...toAskedNote(question, { state: 'none' }), toolName, args: { ...args }, madeBy }
}

function toResult({ state }: Approval, { mode }: ElicitationRequest): ElicitResult {
  if (state.name === 'denied') return { action: 'decline' }
  if (state.name !== 'succeeded') return { action: 'cancel' }
  // The answer was checked against the schema, whose values MCP allows.
  return mode === 'form'
    ? { action: 'accept', content: state.output as ElicitResult['content'] }
    : { action: 'accept' }
}

/** Resolves when a question is not pending any more, or the signal aborts. */
function untilDecided(ledger: Ledger, question: Approval, signal: AbortSignal): Promise<Approval> {
  return new Promise((resolve) => {
    const finish = (approval: Approval): void => {
      unsubscribe()
      clearInterval(timer)
      signal.removeEventListener('abort', abort)
      resolve(approval)
    }
    const look = (approval: Approval | undefined): void => {
      if (approval?.id === question.id && approval.state.name !== 'requested') finish(approval)
    }
    const abort = (): void => finish(question)
    const read = (): void => {
      // The next interval reads again.
      ledger.get(question.id).then(look, () => undefined)
    }
    const unsubscribe = ledger.onChange(look)
    const timer = setInterval(read, POLL_MS)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort)
    read()
  })
}
