import { once } from 'node:events'
import type { RequestListener, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { BaseLlm } from '@google/adk'
import { startEmulator, type Emulator, type EmulatorOptions, type Responder } from 'gemini-emulator'

import { listen } from '../../../../test/support/listen.ts'
import type { Chunk } from '../../src/protocol/index.ts'
import type { Bridge, BridgeOptions, SeveralAgentsOptions } from '../../src/server/index.ts'
import { createBridge } from '../../src/server/index.ts'
import { toUpgradeListener } from '../../src/use/node.ts'
import { assistant, EmulatedGemini } from './agents.ts'
import { Browser } from './browser.ts'
import { nodeHost, type Host } from './hosts.ts'
import { findFaults, readFrames } from './wire-rules.ts'
import type { TurnInfo } from '../../src/server/settings/observers.ts'

export interface ServeOptions
  extends Omit<BridgeOptions, 'agent' | 'live'>, Pick<SeveralAgentsOptions, 'chooseAgent'> {
  /** Live conversations with an emulated live model. Default: none. */
  readonly liveModel?: string
  readonly live?: (model: EmulatedGemini) => NonNullable<BridgeOptions['live']>
  /** The model of the agents. Default `gemini-2.5-flash`. */
  readonly textModel?: string
  /** The agent around the emulated model. Default: one without tools. */
  readonly agent?: (model: BaseLlm) => BridgeOptions['agent']
  /** Several agents around the emulated model, in place of one. */
  readonly agents?: (model: BaseLlm) => SeveralAgentsOptions['agents']
  readonly respond?: Responder
  /** Other options of the emulator. */
  readonly emulator?: Omit<EmulatorOptions, 'respond'>
  readonly host?: Host
  /** Whether every stream is recorded, and checked when the server closes. Default true. */
  readonly recorded?: boolean
}

/** A bridge on a real port, in front of a real ADK agent that talks to an emulated Gemini. */
export interface TestServer extends AsyncDisposable {
  readonly url: string
  readonly emulator: Emulator
  readonly bridge: Bridge
  /** What the bridge reported to `onError`. */
  readonly errors: unknown[]
  /** What the bridge reported to `onChunk`. */
  readonly reported: { readonly chunk: Chunk; readonly turn: TurnInfo }[]
  /** Every response that was started. */
  readonly responses: ServerResponse[]
  /** Returns a new browser. */
  browser(): Browser
}

/** A live model whose calls block it, like those of most models. */
const LIVE_MODEL = 'gemini-3.1-flash-live-preview'

/** Starts a server for one test. When it is disposed, every stream that it sent must follow PROTOCOL.md. */
export async function serve(options: ServeOptions = {}): Promise<TestServer> {
  const {
    agent = assistant,
    agents,
    chooseAgent,
    host = nodeHost,
    recorded = true,
    respond,
    emulator: emulatorOptions,
    live,
    liveModel = LIVE_MODEL,
    textModel,
    ...bridgeOptions
  } = options
  const emulator = await startEmulator({
    paceMs: 0,
    ...emulatorOptions,
    ...(respond && { respond }),
  })
  const errors: unknown[] = []
  const reported: TestServer['reported'] = []
  const model = new EmulatedGemini(emulator.baseUrl, textModel)
  const root = agents
    ? { agents: agents(model), ...(chooseAgent && { chooseAgent }) }
    : { agent: agent(model) }
  const bridge = createBridge({
    ...root,
    basePath: host.basePath,
    onError: (error) => errors.push(error),
    onChunk: (chunk, turn) => reported.push({ chunk, turn }),
    ...(live && { live: live(new EmulatedGemini(emulator.baseUrl, liveModel)) }),
    ...bridgeOptions,
  })
  const responses: ServerResponse[] = []
  const recordings: RecordedResponse[] = []
  const listener = host.mount(bridge)
  const recordingListener: RequestListener = (request, response) => {
    responses.push(response)
    if (recorded) recordings.push(recordResponse(response))
    listener(request, response)
  }
  const server = createServer(recordingListener)
  // On a busy machine, a client may reuse an idle connection while the server closes it, by default after 5 s.
  server.keepAliveTimeout = 600_000
  server.on(
    'upgrade',
    toUpgradeListener(bridge, { mountedAt: host.basePath === '' ? host.path : '' }),
  )
  const port = await listen(server)
  const url = `http://127.0.0.1:${port}${host.path}`
  return {
    url,
    emulator,
    bridge,
    errors,
    reported,
    responses,
    browser: () => new Browser(url),
    async [Symbol.asyncDispose]() {
      await bridge.close({ drainMs: 0 })
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
      await emulator.close()
      await checkRecordings(recordings)
    },
  }
}

/** The data that was written to one response. */
interface RecordedResponse {
  readonly response: ServerResponse
  readonly pieces: Buffer[]
}

function recordResponse(response: ServerResponse): RecordedResponse {
  const pieces: Buffer[] = []
  const keep = (piece: unknown): void => {
    if (typeof piece === 'string') pieces.push(Buffer.from(piece))
    else if (piece instanceof Uint8Array) pieces.push(Buffer.from(piece))
  }
  const write = response.write.bind(response)
  const end = response.end.bind(response)
  // Both have overloads that differ only in what is passed on.
  response.write = ((...args: Parameters<typeof write>) => {
    keep(args[0])
    return write(...args)
  }) as typeof write
  response.end = ((...args: Parameters<typeof end>) => {
    keep(args[0])
    return end(...args)
  }) as typeof end
  return { response, pieces }
}

async function checkRecordings(recordings: readonly RecordedResponse[]): Promise<void> {
  const faults: string[] = []
  for (const { response, pieces } of recordings) {
    const type = String(response.getHeader('content-type') ?? '')
    const sent = Buffer.concat(pieces).toString()
    if (!sent.startsWith('data: ')) continue
    const { chunks, faults: torn, done } = readFrames(sent)
    faults.push(...torn, ...(await findFaults(chunks, done)))
    if (type !== '' && type !== 'text/event-stream') faults.push(`a stream as ${type}`)
  }
  if (faults.length > 0) throw new Error(`A stream breaks the protocol:\n${faults.join('\n')}`)
}
