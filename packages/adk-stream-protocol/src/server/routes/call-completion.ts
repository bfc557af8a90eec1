import { z } from 'zod'

import { isRecordable } from '../../approvals/digest.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { OutputResponse } from '../../protocol/read-responses.ts'
import { defer } from '../../shared/async.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import type { Turn } from '../../turns/turn.ts'
import type { TurnRegistry } from '../../turns/turn-registry.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { ApprovalDecisions } from '../chats/decisions/approval-decisions.ts'
import type { LazyBackend } from '../chats/backend.ts'
import type { ChatRuns } from '../chats/chat-runs.ts'
import { toAnswer } from '../chats/turns/question-answers.ts'
import { findStoredCall, type StoredCall } from '../chats/host/stored-calls.ts'
import type { TurnService } from '../chats/turns/turn-service.ts'
import type { Reply } from '../http/exchange.ts'
import { checkInput, readJson, reply } from '../http/exchange.ts'
import type { AuthenticatedRequest, Route } from '../http/http-router.ts'
import type { BridgeLimits } from '../settings/limits.ts'

/** Identifies a tool call. A background job stores it to complete the call later. */
export interface CallAddress extends ChatRef {
  readonly toolCallId: string
}

/**
 * The final result of a long-running call: its output, or an error message.
 *
 * @inline
 */
export type CallCompletion = CallAddress &
  ({ readonly output: unknown } | { readonly error: string })

/**
 * A long-running call that a request wants to complete over HTTP.
 *
 * @inline
 */
interface CompletableCall extends CallAddress {
  readonly toolName: string
}

/**
 * Returns true if a principal may complete a call over HTTP.
 *
 * @inline
 */
export type MayCompleteCalls = (
  principal: Principal,
  call: CompletableCall,
) => boolean | Promise<boolean>

export interface CallCompletionsOptions {
  readonly backend: LazyBackend
  readonly turns: Pick<TurnRegistry, 'running'>
  readonly turnService: Pick<TurnService, 'resume'>
  readonly decisions: Pick<ApprovalDecisions, 'findQuestion' | 'decideById'>
  readonly runs: Pick<ChatRuns, 'show'>
  readonly limits: BridgeLimits
  readonly mayCompleteCalls?: MayCompleteCalls
}

/** Completes long-running calls, for the application and over HTTP. */
export interface CallCompletions {
  readonly routes: readonly Route[]
  /** Completes a call. Resolves when the result is stored. Throws `call-completed` if it has a final result. */
  readonly complete: (completion: CallCompletion) => Promise<void>
}

const NOT_JSON =
  'completeCall: `output` cannot be stored as JSON. Pass plain data without bigint values and circular references.'

export function openCallCompletions(options: CallCompletionsOptions): CallCompletions {
  const { decisions, runs, limits, mayCompleteCalls } = options

  const complete = async (completion: CallCompletion): Promise<void> => {
    const { principalId, chatId, toolCallId } = completion
    const chat = { principalId, chatId }
    if ('output' in completion && !isRecordable([completion.output])) throw new TypeError(NOT_JSON)
    const result =
      'error' in completion ? { errorText: completion.error } : { output: completion.output }
    const question = await decisions.findQuestion(chat, toolCallId)
    if (question) {
      if (question.state.name !== 'requested') throw new ProtocolError('call-completed')
      // The application answers in the name of the owner of the chat.
      await decisions.decideById({ id: principalId }, toAnswer(question, { toolCallId, result }))
      return
    }
    const turn = await resumeWithResult(options, chat, { toolCallId, result })
    runs.show(chat, turn)
  }

  const post = async (request: AuthenticatedRequest): Promise<Reply> => {
    const { principal, id: chatId, name: toolCallId, exchange } = request
    const body = checkInput(Body, await readJson(exchange, limits), BAD_BODY)
    const { principalId = principal.id, ...result } = body
    if (!mayCompleteCalls) throw new ProtocolError('unknown-call')
    const found = await findAfterTurn(options, { principalId, chatId }, toolCallId)
    const { toolName } = found?.call ?? {}
    // The same error as for a missing permission, so that a principal without permission cannot find out which calls exist.
    if (toolName === undefined) throw new ProtocolError('unknown-call')
    const address = { principalId, chatId, toolCallId }
    // A JavaScript function may return any value. Only `true` is a permission.
    const allowed: unknown = await mayCompleteCalls(principal, { ...address, toolName })
    if (allowed !== true) throw new ProtocolError('unknown-call')
    await complete({ ...address, ...result })
    return reply(204)
  }

  return { routes: [{ method: 'POST', path: '/chats/:id/calls/:name', handle: post }], complete }
}

/**
 * Completes a long-running call with its final result. Resolves when the result is stored; the model then continues without a
 * reader.
 */
async function resumeWithResult(
  options: CallCompletionsOptions,
  chat: ChatRef,
  result: OutputResponse,
): Promise<Turn> {
  const found = await findAfterTurn(options, chat, result.toolCallId)
  if (!found) throw new ProtocolError('unknown-call')
  const stored = defer()
  const completion = { ...result, onStored: stored.resolve }
  const responses = { outputs: [], background: true, completion }
  const turn = await options.turnService.resume(chat, found.messageId, responses)
  await Promise.race([stored.promise, turn.settled])
  const after = await findStoredCall(await options.backend.get(), chat, result.toolCallId)
  // The turn was stopped, or the server is closing, before the result was stored.
  if (!after?.call.completed) throw new ProtocolError('unavailable')
  return turn
}

/** Finds a call. If a turn is running, waits for its end and looks again. */
async function findAfterTurn(
  { backend, turns }: Pick<CallCompletionsOptions, 'backend' | 'turns'>,
  chat: ChatRef,
  toolCallId: string,
): Promise<StoredCall | undefined> {
  const opened = await backend.get()
  const found = await findStoredCall(opened, chat, toolCallId)
  const running = found ? undefined : turns.running(chat)
  if (!running) return found
  await running.settled
  return findStoredCall(opened, chat, toolCallId)
}

const PrincipalId = z.string().min(1).max(256).optional()

const Body = z.union([
  z.strictObject({
    principalId: PrincipalId,
    output: z.unknown().refine((it) => it !== undefined),
  }),
  z.strictObject({ principalId: PrincipalId, error: z.string().min(1).max(10_000) }),
])

const BAD_BODY =
  'Send { "output": any JSON } or { "error": text }, and "principalId" if the chat is not your own.'
