// Row F, the floor of every ADK bridge: the Runner, and the least that still honours backpressure and a client that leaves.
import { once } from 'node:events'
import { InMemorySessionService, Runner, StreamingMode } from '@google/adk'

import { scriptedAgent } from '../scripted-model.ts'
import { type Answer, deltaFrame, newestText, readChatBody, serve, SSE_HEADERS } from './serve.ts'

const appName = 'bench'
const userId = 'user'
const sessionService = new InMemorySessionService()
const runner = new Runner({ agent: scriptedAgent(), appName, sessionService })

const answer: Answer = async (request, response) => {
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

await serve(answer)
