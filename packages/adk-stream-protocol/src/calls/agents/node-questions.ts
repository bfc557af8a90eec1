import type { Event, InvocationContext } from '@google/adk'
import { Context, generateClientFunctionCallId, requestInputTool } from '@google/adk'
import type { FunctionCall, Part } from '@google/genai'

import type { AskedNote } from '../../agent/events/event-notes.ts'
import { writeNotes } from '../../agent/events/event-notes.ts'
import { isInterrupt } from '../../agent/events/input-names.ts'
import type { ResolvedTerms } from '../../approvals/policy.ts'
import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import type { RequestOptions, RunEvent } from '../approval-requests.ts'
import { storeRequest } from '../approval-requests.ts'
import type { TermsOptions } from '../call-kind.ts'
import { checkCall } from '../call-terms.ts'

/** Stores the questions of a workflow node in the ledger before clients see them. Returns undefined if the event has none. */
export async function storeNodeQuestions(
  { run, context, event }: RunEvent,
  options: RequestOptions,
): Promise<Event | undefined> {
  const asked: AskedNote[] = []
  for (const { functionCall } of event.content?.parts ?? []) {
    if (!functionCall || !run.isOfChat || !isInterrupt(functionCall)) continue
    const { toolCallId, terms, request } = await resolveNodeQuestion(functionCall, context, options)
    run.asking.set(toolCallId, terms)
    const note = await storeRequest(run, { context, part: request }, options)
    if (!note) throw new Error('The question of a workflow node cannot be asked.')
    asked.push(note)
  }
  if (asked.length === 0) return undefined
  const notes = { asked, messageId: run.messageId }
  return { ...event, customMetadata: writeNotes(notes, event.customMetadata) }
}

/** A `RequestInput` of a workflow node, as the ledger asks it. */
interface NodeQuestion {
  readonly toolCallId: string
  readonly terms: ResolvedTerms
  /** The request in the form in which ADK requests an approval. */
  readonly request: Part
}

/** Returns the terms of a `RequestInput`, on the same policy as questions of a model. Throws if a person cannot answer it. */
async function resolveNodeQuestion(
  { id = '', name = '', args = {} }: FunctionCall,
  invocationContext: InvocationContext,
  options: TermsOptions,
): Promise<NodeQuestion> {
  const { message } = args
  const hasMessage = typeof message === 'string' && message !== ''
  const toolArgs = { ...args, message: hasMessage ? message : 'The workflow needs your input.' }
  const toolContext = new Context({ invocationContext, functionCallId: id })
  const check = await checkCall({ tool: requestInputTool, toolArgs, toolContext }, options)
  if (check.verdict !== 'ask')
    throw new Error(
      `A RequestInput of a workflow node cannot be asked. ${check.verdict === 'refuse' ? check.response.error : ''}`,
    )
  const functionCall = {
    id: generateClientFunctionCallId(),
    name: CONFIRMATION_TOOL,
    args: { originalFunctionCall: { id, name, args } },
  }
  return { toolCallId: id, terms: check.terms, request: { functionCall } }
}
