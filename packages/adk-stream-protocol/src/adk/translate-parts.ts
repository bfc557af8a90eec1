import type { Event } from '@google/adk'
import type { Blob, FunctionCall, FunctionResponse, Part } from '@google/genai'

import type { TextKind } from '../protocol/chunk.ts'
import type { Telling } from './telling.ts'

/** Names of ADK's own calls, which ask the client for something or move the conversation; none is a tool of the agent. */
const CONFIRMATION_CALL = 'adk_request_confirmation'
const CREDENTIAL_CALL = 'adk_request_credential'
const TRANSFER_CALL = 'transfer_to_agent'

/** Tells what an event's content says, shows and does. */
export function translateParts(telling: Telling, event: Event): void {
  const parts = event.content?.parts
  if (!parts || parts.length === 0) return
  if (event.partial) {
    for (const part of parts) streamPart(telling, part)
    return
  }
  const skip = {
    text: telling.alreadyStreamed('text', joinProse(parts, 'text')),
    reasoning: telling.alreadyStreamed('reasoning', joinProse(parts, 'reasoning')),
  }
  for (const part of parts) {
    const kind = proseKind(part)
    if (kind === undefined) tellPart(telling, part, event)
    else {
      const text = part.text ?? ''
      telling.say(kind, text.slice(skip[kind]))
      skip[kind] = Math.max(0, skip[kind] - text.length)
    }
  }
  telling.forgetStreamed()
}

// Only prose is streamed: ADK repeats every other part in a whole event, and a call is not one before it is whole.
function streamPart(telling: Telling, part: Part): void {
  const kind = proseKind(part)
  if (kind === undefined || part.text === undefined) return
  telling.say(kind, part.text)
  telling.noteStreamed(kind, part.text)
}

function proseKind(part: Part): TextKind | undefined {
  if (typeof part.text !== 'string') return undefined
  return part.thought === true ? 'reasoning' : 'text'
}

function joinProse(parts: readonly Part[], kind: TextKind): string {
  return parts.map((part) => (proseKind(part) === kind ? (part.text ?? '') : '')).join('')
}

function tellPart(telling: Telling, part: Part, event: Event): void {
  if (part.functionCall) tellCall(telling, part.functionCall, event)
  if (part.functionResponse) tellResponse(telling, part.functionResponse)
  if (part.inlineData) tellBlob(telling, part.inlineData)
  if (part.fileData?.fileUri) tellFile(telling, part.fileData.fileUri, part.fileData.mimeType)
  if (part.executableCode) {
    const { language = 'LANGUAGE_UNSPECIFIED', code = '' } = part.executableCode
    telling.addPart({ type: 'data-executable-code', data: { language, code } })
  }
  if (part.codeExecutionResult) {
    const { outcome = 'OUTCOME_UNSPECIFIED', output = '' } = part.codeExecutionResult
    telling.addPart({ type: 'data-code-execution-result', data: { outcome, output } })
  }
}

function tellCall(telling: Telling, call: FunctionCall, event: Event): void {
  const { id, name: toolName = '', args: input = {} } = call
  // ADK gives every call an id before it yields the event.
  if (id === undefined || toolName === TRANSFER_CALL) return
  if (toolName === CONFIRMATION_CALL || toolName === CREDENTIAL_CALL) {
    const asked =
      toolName === CONFIRMATION_CALL ? readConfirmedCall(input) : input['function_call_id']
    if (typeof asked === 'string') telling.settle(asked, { errorText: CANNOT_ASK[toolName] })
    return
  }
  const waiting = event.longRunningToolIds?.includes(id) === true
  telling.call({ id, toolName, input, state: waiting ? 'waiting' : 'running' })
}

const CANNOT_ASK = {
  [CONFIRMATION_CALL]:
    'Not run: this tool needs the approval of a person, which this server cannot ask for.',
  [CREDENTIAL_CALL]: 'Not run: this tool needs a sign-in, which this server cannot ask for.',
}

function readConfirmedCall(input: Record<string, unknown>): unknown {
  const original = input['originalFunctionCall']
  return typeof original === 'object' && original !== null && 'id' in original
    ? original.id
    : undefined
}

function tellResponse(
  telling: Telling,
  { id, name, response = {}, parts }: FunctionResponse,
): void {
  if (id === undefined) return
  telling.settle(id, readToolResult(name ?? 'tool', response))
  for (const { inlineData, fileData } of parts ?? []) {
    if (inlineData) tellBlob(telling, inlineData)
    if (fileData?.fileUri) tellFile(telling, fileData.fileUri, fileData.mimeType)
  }
}

/**
 * A response of nothing but `error` is how ADK reports a failed call. The words of a thrown error are for the log, not for a
 * stranger: they hold paths, queries, addresses (ER3). An error that the tool itself returned is its answer and is shown.
 */
function readToolResult(
  toolName: string,
  response: Record<string, unknown>,
): { output: unknown } | { errorText: string } {
  const { error, ...rest } = response
  if (typeof error !== 'string' || Object.keys(rest).length > 0) return { output: response }
  const thrown = error.startsWith(`Error in tool '${toolName}': `)
  return { errorText: thrown ? `The tool ${toolName} failed.` : error }
}

const PCM = /^audio\/(?:pcm|l16)\b/i
const PCM_RATE = /rate=(\d+)/i

function tellBlob(
  telling: Telling,
  { mimeType = 'application/octet-stream', data = '' }: Blob,
): void {
  if (PCM.test(mimeType)) {
    const sampleRate = Number(PCM_RATE.exec(mimeType)?.[1] ?? 24_000)
    const pcm = { content: data, sampleRate, channels: 1, bitDepth: 16 } as const
    telling.chunks.push({ type: 'data-pcm', data: pcm, transient: true })
    return
  }
  telling.addPart({ type: 'file', url: `data:${mimeType};base64,${data}`, mediaType: mimeType })
}

// A page would follow the address; one that runs code there is not shown.
const SAFE_FILE = /^(?:https?|gs):\/\//i

function tellFile(telling: Telling, url: string, mimeType = 'application/octet-stream'): void {
  if (SAFE_FILE.test(url)) telling.addPart({ type: 'file', url, mediaType: mimeType })
}
