import type { LiveSession } from 'gemini-emulator'
import { Modality } from '@google/genai'

import {
  TestBridge,
  type TestBridgeOptions,
  type Person,
} from '../../approvals/support/test-bridge.ts'
import { SocketClient, type ServerFrameSeen } from '../../sockets/support/socket-client.ts'
import type { BridgeOptions } from '../../../src/server/index.ts'

type LiveSettings = NonNullable<BridgeOptions['live']>

export interface LiveTestBridgeOptions extends Omit<TestBridgeOptions, 'live'> {
  /** Whether the model replies with audio. Default false: with text. */
  readonly spoken?: boolean
  readonly live?: Omit<LiveSettings, 'model'>
}

/** A test bridge with live conversations. */
export function openLiveTestBridge(options: LiveTestBridgeOptions = {}): Promise<TestBridge> {
  const { spoken = false, live, ...rest } = options
  const runConfig = spoken ? {} : { runConfig: { responseModalities: [Modality.TEXT] } }
  return TestBridge.open({ ...rest, live: (model) => ({ model, ...runConfig, ...live }) })
}

/** A client of the test bridge, on a socket. */
export function joinLive(testBridge: TestBridge, person: Person = 'hanako'): Promise<SocketClient> {
  return SocketClient.open(testBridge.url, { headers: { 'x-api-key': person } })
}

/** The request ids of turns that this client did not request, in order. */
export function unasked(client: SocketClient): string[] {
  return client.frames.flatMap(({ type, requestId }) => (type === 'turn' ? requestId : []))
}

/** Resolves with the request id of the n-th turn that the client did not request. */
export async function nextUnasked(client: SocketClient, index = 0): Promise<string> {
  await client.next(() => unasked(client).length > index)
  return unasked(client)[index] ?? ''
}

/** Resolves with the text of a reply when it has ended. */
export async function whole(client: SocketClient, requestId = 'r1'): Promise<string> {
  const last = await client.next(
    (frame) => frame.requestId === requestId && ['end', 'error'].includes(frame.type),
  )
  if (last.type === 'error') throw new Error(`${requestId}: ${JSON.stringify(last)}`)
  return client.text(requestId)
}

/** Resolves with the first chunk of a type in a reply. */
export async function chunkOf(client: SocketClient, type: string, requestId = 'r1') {
  await client.next(() => client.chunks(requestId).some((chunk) => chunk.type === type))
  const found = client.chunks(requestId).find((chunk) => chunk.type === type)
  if (!found) throw new Error(`no ${type}`)
  return found
}

/** The approvals that a reply requested: tool call → approval. */
export function asked(client: SocketClient, requestId = 'r1'): string[] {
  return client
    .chunks(requestId)
    .flatMap((chunk) =>
      chunk.type === 'tool-approval-request' ? [String(chunk['approvalId'])] : [],
    )
}

export async function untilAsked(
  client: SocketClient,
  count = 1,
  requestId = 'r1',
): Promise<string[]> {
  await client.next(() => asked(client, requestId).length >= count)
  return asked(client, requestId)
}

/** The frame that ended a reply. */
export function finishOf(client: SocketClient, requestId = 'r1') {
  return client.chunks(requestId).find(({ type }) => type === 'finish')
}

export function framesOf(client: SocketClient, type: string): ServerFrameSeen[] {
  return client.frames.filter((frame) => frame.type === type)
}

/** The emulator's newest session. */
export function lastSession(testBridge: TestBridge): LiveSession {
  const session = testBridge.emulator.live.sessions.at(-1)
  if (!session) throw new Error('Nobody is connected.')
  return session
}

/** The protocol rules that a reply breaks. After a pause, a reply starts with the results of its calls, outside of any step. */
export async function faultsOf(client: SocketClient, requestId = 'r1'): Promise<string[]> {
  const faults = await client.faults(requestId)
  return faults.filter((fault) => !/^(?:data-approval|tool-output\S+) outside a step$/.test(fault))
}
