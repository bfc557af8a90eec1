// Row F, the lower bound for an ADK bridge: the Runner with backpressure and an abort when the client disconnects.
// Row S, the lower bound for a bridge that stores its chats: it also writes each event to a SQLite file.
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type AppendEventRequest,
  type Event,
  InMemorySessionService,
  Runner,
  StreamingMode,
} from '@google/adk'
import Database from 'libsql'

import { scriptedAgent } from '../scripted-model.ts'
import { type Handler, deltaFrame, newestText, readChatBody, serve, SSE_HEADERS } from './serve.ts'

/** Sessions in memory, whose events survive the end of the process. Nothing reads them again. */
class StoredSessionService extends InMemorySessionService {
  readonly #insert: Database.Statement

  constructor() {
    super()
    const folder = mkdtempSync(join(tmpdir(), 'adk-runner-bench-'))
    process.on('exit', () => rmSync(folder, { recursive: true }))
    const database = new Database(join(folder, 'chats.db'))
    database.exec(`
      PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
      CREATE TABLE events (session TEXT, id TEXT, data TEXT, PRIMARY KEY (session, id))`)
    this.#insert = database.prepare('INSERT INTO events VALUES (?, ?, ?)')
  }

  override async appendEvent(request: AppendEventRequest): Promise<Event> {
    const event = await super.appendEvent(request)
    if (!event.partial) this.#insert.run(request.session.id, event.id, JSON.stringify(event))
    return event
  }
}

const appName = 'bench'
const userId = 'user'
const sessionService =
  process.argv[2] === 'S' ? new StoredSessionService() : new InMemorySessionService()
const runner = new Runner({ agent: scriptedAgent(), appName, sessionService })

const handle: Handler = async (request, response) => {
  const body = await readChatBody(request)
  const sessionId = body.id
  await sessionService.getOrCreateSession({ appName, userId, sessionId })
  const leaving = new AbortController()
  response.on('close', () => leaving.abort())
  response.writeHead(200, SSE_HEADERS)
  const events = runner.runAsync({
    userId,
    sessionId,
    newMessage: { role: 'user', parts: [{ text: newestText(body) }] },
    runConfig: { streamingMode: StreamingMode.SSE },
    abortSignal: leaving.signal,
  })
  for await (const event of events) {
    const text = event.partial ? event.content?.parts?.[0]?.text : undefined
    if (text === undefined || response.write(deltaFrame(text))) continue
    await once(response, 'drain', { signal: leaving.signal })
  }
  response.end('data: [DONE]\n\n')
}

await serve(handle)
