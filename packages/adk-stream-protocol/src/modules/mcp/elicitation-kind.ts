import { randomUUID } from 'node:crypto'

import type { ElicitRequest, ElicitResult } from '@modelcontextprotocol/sdk/types.js'

import { wrapRun } from '../../agent/adk-workarounds/guard-tool.ts'
import type { ElicitFault } from './mcp-sessions.ts'
import { callMcpTool, readMcpTool } from './mcp-sessions.ts'
import { describeEnding } from '../../agent/call-responses.ts'
import { toAskedNote, toEndingNotes } from '../../agent/events/approval-notes.ts'
import type { EventNotes } from '../../agent/events/event-notes.ts'
import type { ToolCall } from '../../agent/tool-call.ts'
import { chatOf } from '../../agent/tool-call.ts'
import type { Approval } from '../../approvals/approval.ts'
import type { Ledger } from '../../approvals/ledger.ts'
import type { ResolvedTerms } from '../../approvals/policy.ts'
import { isRefusal } from '../../approvals/approval.ts'
import type { CallHost, CallKind } from '../../calls/call-kind.ts'
import { resolveQuestionTerms, readToolClaims } from '../../calls/call-terms.ts'
import type { ElicitationRequest } from './elicitation-request.ts'
import { ELICITATION_CALL, readElicitation } from './elicitation-request.ts'
import type { RootRun, RunState } from '../../calls/run-state.ts'
import { createNote } from '../../calls/run-state.ts'

/** The questions of MCP servers. `isEnabled`: the option `elicitation`. */
export function createElicitationKind(isEnabled: boolean): CallKind {
  const kind: CallKind = {
    name: 'elicitation',
    asks: 'during-call',
    isEnabled,
    // The person answers the server, on the terms of the server.
    hasPolicy: false,
    // A person who is asked to open a URL answers nothing.
    answer: { isResult: false, toSchema: ({ schema }) => schema },
    ...(isEnabled && {
      prepare: (call, { run, host }) => {
        if (run) allowElicitation(call, run, { owner: kind, host })
      },
    }),
  }
  return kind
}

/** A call whose MCP server may ask. */
interface AskingCall {
  readonly host: CallHost
  readonly call: ToolCall
  readonly run: RunState
  /** Where the questions are shown. */
  readonly root: RootRun
  /** How many questions the call has asked. */
  count: number
}

/** A server that asks more often during one call is refused. */
const MAX_QUESTIONS = 20

/** How often the ledger is read for a decision that another process recorded, in ms. */
const POLL_MS = 1_000

const REASONS = {
  stopped: 'the call was stopped',
  failed: 'the server could not ask it',
  unwanted: 'the server that asked no longer waits',
} as const

/**
 * Lets the MCP server of a call ask people questions while the call runs. The call waits in this process until the answer arrives.
 * Does nothing for other tools.
 */
function allowElicitation(
  call: ToolCall,
  run: RunState,
  { owner, host }: { readonly owner: object; readonly host: CallHost },
): void {
  const { tool, toolContext } = call
  const mcpTool = readMcpTool(tool)
  const root = run.rootOf(toolContext.invocationContext)
  const canShow = root.sessions !== undefined || root.run.outside !== undefined
  if (!mcpTool || toolContext.functionCallId === undefined || !canShow) return
  const asking = { host, call, run, root, count: 0 }
  wrapRun(toolContext, owner, (_run, args) =>
    callMcpTool(mcpTool, {
      args,
      signal: toolContext.abortSignal,
      elicit: (params, signal) => elicitNext(asking, params, signal),
    }),
  )
}

/** Asks when the previous question of the run has ended: the stream ends at a question, so a client can show one. */
async function elicitNext(
  asking: AskingCall,
  params: ElicitRequest['params'],
  signal: AbortSignal,
): Promise<ElicitResult | ElicitFault> {
  const { questions, outside } = asking.root.run
  const ended = outside ? AbortSignal.any([signal, outside.questions.signal]) : signal
  const asked = questions.last.then(() => (ended.aborted ? CANCEL : elicit(asking, params, ended)))
  questions.last = asked.catch(() => undefined)
  return asked
}

async function elicit(
  asking: AskingCall,
  params: ElicitRequest['params'],
  signal: AbortSignal,
): Promise<ElicitResult | ElicitFault> {
  const request = readElicitation(params)
  if ('fault' in request) return { fault: `Nobody was asked: ${request.fault}` }
  asking.count += 1
  if (asking.count > MAX_QUESTIONS)
    return { fault: `Nobody was asked: one call may ask at most ${MAX_QUESTIONS} questions.` }
  const question = await requestAnswer(asking, request)
  if (!question)
    return { fault: 'Nobody was asked: too many questions wait for an answer. Ask later.' }
  try {
    const { questions } = asking.root.run.outside ?? {}
    await show(asking, { askedDuringCalls: [toElicited(asking, question)] })
    questions?.onStateChange('asked')
    const ended = await untilEnded(asking, question, signal)
    questions?.onStateChange('ended')
    await report(asking, ended)
    return toResult(ended, request)
  } catch (error) {
    // The conversation or the ledger cannot be written, for example because another process has taken over the chat.
    asking.host.onError(error)
    await asking.host.ledger.cancel(question.id, REASONS.failed)
    return CANCEL
  }
}

/** Stores the question in the ledger before clients see it. */
async function requestAnswer(
  { host, call, run, root }: AskingCall,
  request: ElicitationRequest,
): Promise<Approval | undefined> {
  const { message, mode } = request
  const toolCallId = `${call.toolContext.functionCallId}.elicitation.${randomUUID()}`
  const claims = readToolClaims(call.tool)
  // The owner of the chat is asked, even if other people approve calls of the tool.
  const { outside } = root.run
  const deadline = outside && { deadlineMs: outside.deadlineMs }
  const asks = { ...host, policy: {}, ...deadline }
  const resolved = await resolveQuestionTerms(call, { hint: message }, asks)
  if (!resolved) return undefined
  // The title of the tool is not that of its question.
  const { title: _title, ...asked } = resolved
  const { deadlineMs, ...terms } = toTerms(asked, request, claims?.server ?? call.tool.name)
  const question = await host.ledger.request({
    chat: chatOf(root.session),
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
    terms: { ...terms, ...(run.path && { path: run.path }) },
    deadlineMs,
    // The call that asks runs in this process.
    isAwaited: true,
  })
  return isRefusal(question) ? undefined : question
}

/** Waits for the end of a question. Cancels it if the call no longer waits. */
async function untilEnded(
  asking: AskingCall,
  question: Approval,
  signal: AbortSignal,
): Promise<Approval> {
  const { ledger } = asking.host
  const { abortSignal } = asking.call.toolContext
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
async function report(asking: AskingCall, ended: Approval): Promise<void> {
  const { toolCallId: id, toolName: name, chat } = ended
  const ending = describeEnding(ended)
  if (ending && !asking.call.toolContext.abortSignal?.aborted) {
    const { response, note } = ending
    await show(asking, toEndingNotes(ended.id, { id, name, response }, note))
  }
  await asking.host.ledger.markReported(chat, [id])
}

const CANCEL: ElicitResult = { action: 'cancel' }

/** Stores an event without content in the session of the chat, and shows it while the call runs. */
async function show({ root }: AskingCall, notes: EventNotes): Promise<void> {
  const { run, session, sessions } = root
  const event = createNote(root, notes)
  if (run.outside) return run.outside.questions.show(event)
  await sessions?.appendEvent({ session, event })
  run.show(event)
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
  { call }: AskingCall,
  question: Approval,
): NonNullable<EventNotes['askedDuringCalls']>[number] {
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

/** Resolves when a question is no longer pending, or the signal aborts. */
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
