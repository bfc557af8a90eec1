import { isPriorDecision } from '../../protocol/decision-evidence.ts'
import type { Event } from '@google/adk'
import type {
  Blob,
  FunctionCall,
  FunctionResponse,
  Part,
  CitationMetadata,
  GroundingChunk,
  GroundingMetadata,
} from '@google/genai'

import type { TextKind } from '../../protocol/chunk.ts'
import type { Citation, DataParts } from '../../protocol/message.ts'
import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import { describeToolFailure, isDeniedBefore, PENDING_INSIDE } from '../call-responses.ts'
import type { DecidedNote, EventNotes } from '../events/event-notes.ts'
import { readNotes } from '../events/event-notes.ts'
import { isInterrupt, readCallName, waitsForResult } from '../events/input-names.ts'
import { readOriginalCall } from '../tool-call.ts'
import type { ChunkWriter, ToolResult } from './chunk-writer.ts'
import { countAudio, isPcm, toPcm } from './count-usage.ts'

/** ADK's own calls, which request something from the client or transfer the conversation. They are not tools of the agent. */
const CREDENTIAL_CALL = 'adk_request_credential'
const TRANSFER_CALL = 'transfer_to_agent'

/** Writes the content of an event. */
export function translateParts(writer: ChunkWriter, event: Event): void {
  const parts = event.content?.parts
  if (!parts || parts.length === 0) return
  const { input } = readNotes(event)
  if (input) {
    writer.complete(input.toolCallId, readToolResult('tool', input.response))
    return
  }
  if (event.partial) {
    for (const part of parts) streamPart(writer, part)
    return
  }
  const skip = {
    text: writer.alreadyStreamed('text', joinProse(parts, 'text')),
    reasoning: writer.alreadyStreamed('reasoning', joinProse(parts, 'reasoning')),
  }
  for (const part of parts) {
    const kind = proseKind(part)
    if (kind === undefined) writePart(writer, part, event)
    else {
      const text = part.text ?? ''
      writer.writeText(kind, text.slice(skip[kind]))
      skip[kind] = Math.max(0, skip[kind] - text.length)
    }
  }
  if (!isBetweenPartials(event)) writer.forgetStreamed()
}

/**
 * Whether a complete event can arrive between the partial events of a text. In a live session the model speaks while calls wait and
 * run, so approval requests and tool responses (role `user`) and audio do not end its text.
 */
function isBetweenPartials(event: Event): boolean {
  return isAudioOnly(event) || event.content?.role === 'user'
}

/**
 * Whether an event contains audio only. The audio of a live model arrives in complete events between the partial
 * events of its text.
 */
export function isAudioOnly({ content }: Event): boolean {
  return content?.parts?.every(({ inlineData }) => isPcm(inlineData?.mimeType ?? '')) === true
}

// Only text is streamed. ADK repeats all other parts in the complete event, and a call is only usable when it is
// complete.
function streamPart(writer: ChunkWriter, part: Part): void {
  const kind = proseKind(part)
  if (kind === undefined || part.text === undefined) return
  writer.writeText(kind, part.text)
  writer.recordStreamed(kind, part.text)
}

function proseKind(part: Part): TextKind | undefined {
  if (typeof part.text !== 'string') return undefined
  return part.thought === true ? 'reasoning' : 'text'
}

function joinProse(parts: readonly Part[], kind: TextKind): string {
  return parts.map((part) => (proseKind(part) === kind ? (part.text ?? '') : '')).join('')
}

function writePart(writer: ChunkWriter, part: Part, event: Event): void {
  if (part.functionCall) writeCall(writer, part.functionCall, event)
  if (part.functionResponse) writeResponse(writer, part.functionResponse, event)
  writeMedia(writer, part)
  if (part.executableCode) {
    const { language = 'LANGUAGE_UNSPECIFIED', code = '' } = part.executableCode
    writer.addPart({ type: 'data-executable-code', data: { language, code } })
  }
  if (part.codeExecutionResult) {
    const { outcome = 'OUTCOME_UNSPECIFIED', output = '' } = part.codeExecutionResult
    writer.addPart({ type: 'data-code-execution-result', data: { outcome, output } })
  }
}

function writeCall(writer: ChunkWriter, call: FunctionCall, event: Event): void {
  const { id, name = '', args: input = {} } = call
  const toolName = readCallName(name)
  // ADK assigns an id to each call before it yields the event.
  if (id === undefined || toolName === TRANSFER_CALL) return
  if (toolName === CONFIRMATION_TOOL) {
    writeApprovalRequest(writer, id, { input, notes: readNotes(event) })
    return
  }
  if (toolName === CREDENTIAL_CALL) {
    const asked = input['function_call_id']
    if (typeof asked === 'string')
      writer.settle(asked, { errorText: UNSUPPORTED_REQUEST.credential })
    return
  }
  const notes = readNotes(event)
  const { steps, asked } = notes
  const state = waitsForResult(event, call, notes) ? 'waiting' : 'running'
  const isLongRunning = event.longRunningToolIds?.includes(id) === true
  writer.writeCall({ id, toolName, input, state, steps, isLongRunning })
  // A node of a workflow asks without a confirmation request.
  const question = isInterrupt(call) && asked?.find(({ toolCallId }) => toolCallId === id)
  if (question) writer.requestApproval({ ...question, state: 'requested' })
}

function writeApprovalRequest(
  writer: ChunkWriter,
  approvalId: string,
  { input, notes }: { input: Record<string, unknown>; notes: EventNotes },
): void {
  const paused = notes.paused?.find((note) => note.confirmationId === approvalId)
  if (paused) {
    writer.pause(paused, PENDING_INSIDE)
    return
  }
  const asked = notes.asked?.find((note) => note.approvalId === approvalId)
  if (asked) {
    writer.requestApproval({ ...asked, state: 'requested' })
    return
  }
  // Another program requested this approval. The ledger has no record of it, so it cannot be decided here.
  const id = readOriginalCall(input)?.['id']
  if (typeof id === 'string') writer.settle(id, { errorText: UNSUPPORTED_REQUEST.confirmation })
}

const UNSUPPORTED_REQUEST = {
  confirmation:
    'Not run: this tool needs the approval of a person, and another program requested it.',
  credential: 'Not run: this tool needs a sign-in, which this server does not support.',
}

function writeResponse(
  writer: ChunkWriter,
  functionResponse: FunctionResponse,
  event: Event,
): void {
  const notes = readNotes(event)
  const { id, name = 'tool', response = {}, parts } = functionResponse
  if (id === undefined || notes.pending?.includes(id)) return
  if (notes.completed?.includes(id)) {
    writer.complete(id, readToolResult(name, response))
    return
  }
  const decided = notes.decided?.find(({ toolCallId }) => toolCallId === id)
  if (decided) writer.decide(decided)
  const ending = decided && readEnding(decided, response, isQuestion(writer, id))
  const result = ending ?? readToolResult(name, response, notes.failed?.includes(id))
  // The result of a run has the author of its agent. A result from outside has the author `user`.
  if (event.author === 'user') writer.settle(id, result)
  else writer.settleRun(id, result)
  for (const part of parts ?? []) writeMedia(writer, part)
}

/** Whether a call asks a person for something else than an approval. */
function isQuestion({ state }: ChunkWriter, id: string): boolean {
  return state.calls.get(id)?.approval?.kind !== undefined
}

/**
 * Writes the results of approved calls inside an agent that is used as a tool, and which of them wait again. Nothing else of the agent
 * is shown.
 */
export function translateInner(writer: ChunkWriter, event: Event): void {
  const notes = readNotes(event)
  // The call of the agent writes the questions.
  for (const note of notes.paused ?? [])
    if (writer.state.calls.get(note.toolCallId)?.madeBy !== undefined)
      writer.pause({ ...note, asked: [] }, PENDING_INSIDE)
  for (const { functionResponse } of event.content?.parts ?? []) {
    const call = writer.state.calls.get(functionResponse?.id ?? '')
    if (functionResponse && call?.madeBy !== undefined)
      writeResponse(writer, functionResponse, event)
  }
}

/**
 * Returns the result of a call that did not run or whose outcome is unknown, or the answer to a question. Returns undefined if the result
 * is in the response. A question that was declined, and a call that nobody was asked about, end with an error, because clients expect
 * `output-denied` only after an approval request.
 */
function readEnding(
  decided: DecidedNote,
  { error }: Record<string, unknown>,
  isAnswer: boolean,
): ToolResult | undefined {
  const { state, approvedPayload } = decided
  if (state === 'denied' && !isAnswer && !isPriorDecision(decided)) return { denied: true }
  if (state !== 'approved') return { errorText: String(error) }
  // For the model, a value that is not an object is wrapped. The person sees what they have entered.
  return isAnswer && approvedPayload !== undefined ? { output: approvedPayload } : undefined
}

function writeMedia(
  writer: ChunkWriter,
  { inlineData, fileData }: Pick<Part, 'inlineData' | 'fileData'>,
): void {
  if (inlineData) writeBlob(writer, inlineData)
  if (fileData?.fileUri) writeFile(writer, fileData.fileUri, fileData.mimeType)
}

/**
 * ADK reports a failed call as a response with `error` only. The message of a thrown error may contain paths, queries
 * and addresses, and is hidden (ER3). An error that the tool itself returned is its result, and is shown.
 */
function readToolResult(
  toolName: string,
  response: Record<string, unknown>,
  failed = false,
): ToolResult {
  if (failed) return { errorText: describeToolFailure(toolName) }
  const { error, ...rest } = response
  if (isDeniedBefore(error)) return { errorText: error }
  if (typeof error !== 'string' || Object.keys(rest).length > 0) return { output: response }
  // Sessions of other programs have no note about a failure. For most tools, ADK uses this wording.
  const thrown = error.startsWith(`Error in tool '${toolName}': `)
  return { errorText: thrown ? describeToolFailure(toolName) : error }
}

function writeBlob(writer: ChunkWriter, blob: Blob): void {
  const pcm = toPcm(blob)
  if (pcm) {
    writer.chunks.push({ type: 'data-pcm', data: pcm, transient: true })
    writer.update({ audio: countAudio(writer.state.audio, pcm) })
    return
  }
  const { mimeType = 'application/octet-stream', data = '' } = blob
  writer.addPart({ type: 'file', url: `data:${mimeType};base64,${data}`, mediaType: mimeType })
}

// Pages link to these URLs, so URLs that could run code are left out.
const SAFE_FILE = /^(?:https?|gs):\/\//i

function writeFile(writer: ChunkWriter, url: string, mimeType = 'application/octet-stream'): void {
  if (SAFE_FILE.test(url)) writer.addPart({ type: 'file', url, mediaType: mimeType })
}

/** Writes each source of a grounded reply once, and the passages that it supports. */
export function translateGrounding(writer: ChunkWriter, grounding: GroundingMetadata): void {
  const sourceIds = (grounding.groundingChunks ?? []).map((chunk) => writeSource(writer, chunk))
  const supports = (grounding.groundingSupports ?? []).map(
    ({ segment, groundingChunkIndices }) => ({
      text: segment?.text ?? '',
      startIndex: segment?.startIndex ?? 0,
      endIndex: segment?.endIndex ?? 0,
      sourceIds: (groundingChunkIndices ?? []).flatMap((index) => sourceIds[index] ?? []),
    }),
  )
  const queries = grounding.webSearchQueries ?? []
  const searchEntryPoint = grounding.searchEntryPoint?.renderedContent
  if (supports.length === 0 && queries.length === 0 && searchEntryPoint === undefined) return
  const data: DataParts['grounding'] = {
    queries,
    supports,
    ...(searchEntryPoint !== undefined && { searchEntryPoint }),
  }
  // The same id for the whole turn: later events repeat the grounding with more data, and replace the part.
  writer.addPart({ type: 'data-grounding', id: 'grounding', data })
}

/** Writes cited URLs as sources and stores the passages in the metadata. */
export function translateCitations(
  writer: ChunkWriter,
  { citations = [] }: CitationMetadata,
): void {
  for (const { uri, title } of citations) {
    if (uri !== undefined) writeUrl(writer, uri, title)
  }
  const kept = citations.map(({ startIndex, endIndex, uri, title, license }): Citation => ({
    ...(startIndex !== undefined && { startIndex }),
    ...(endIndex !== undefined && { endIndex }),
    ...(uri !== undefined && { uri }),
    ...(title !== undefined && { title }),
    ...(license !== undefined && { license }),
  }))
  writer.update({ citations: [...writer.state.citations, ...kept] })
}

function writeSource(writer: ChunkWriter, chunk: GroundingChunk): string | undefined {
  const { uri, title } = readSource(chunk)
  const shown = uri === undefined ? undefined : writeUrl(writer, uri, title)
  if (shown !== undefined || title === undefined) return shown
  return writeOnce(writer, title, (sourceId) =>
    writer.addPart({ type: 'source-document', sourceId, mediaType: 'text/plain', title }),
  )
}

interface Source {
  readonly uri?: string | undefined
  readonly title?: string | undefined
}

function readSource(chunk: GroundingChunk): Source {
  const { web, maps, image, retrievedContext: document } = chunk
  if (image) return { ...image, uri: image.sourceUri }
  if (document) return { ...document, title: document.title ?? document.documentName }
  return web ?? maps ?? {}
}

// Pages link to these URLs, so only web addresses become sources.
function writeUrl(writer: ChunkWriter, url: string, title?: string): string | undefined {
  if (!/^https?:\/\//i.test(url)) return undefined
  return writeOnce(writer, url, (sourceId) =>
    writer.addPart({ type: 'source-url', sourceId, url, ...(title !== undefined && { title }) }),
  )
}

function writeOnce(writer: ChunkWriter, key: string, show: (sourceId: string) => void): string {
  const known = writer.state.sources.get(key)
  if (known !== undefined) return known
  const sourceId = `source-${writer.state.sources.size + 1}`
  show(sourceId)
  writer.update({ sources: new Map(writer.state.sources).set(key, sourceId) })
  return sourceId
}
