import { InMemoryRunner, LiveRequestQueue } from '@google/adk'

import { createTalker, RUN_CONFIG } from './talker.ts'
import { answerParent } from './child.ts'

/** ADK alone: its own `runLive`, with nobody to tell anything to. */
const runner = new InMemoryRunner({ agent: createTalker(), appName: 'bench' })
const queues: LiveRequestQueue[] = []
const waiting = new Map<LiveRequestQueue, () => void>()

async function open(): Promise<void> {
  const { id: sessionId } = await runner.sessionService.createSession({
    appName: 'bench',
    userId: 'person',
  })
  const queue = new LiveRequestQueue()
  queues.push(queue)
  void follow(queue, sessionId)
  await say(queue, '[[say Hello]]')
}

async function follow(queue: LiveRequestQueue, sessionId: string): Promise<void> {
  const events = runner.runLive({
    userId: 'person',
    sessionId,
    liveRequestQueue: queue,
    runConfig: RUN_CONFIG,
  })
  for await (const event of events) if (event.turnComplete) waiting.get(queue)?.()
}

function say(queue: LiveRequestQueue, text: string): Promise<void> {
  return new Promise((resolve) => {
    waiting.set(queue, resolve)
    queue.sendContent({ role: 'user', parts: [{ text }] })
  })
}

answerParent({
  open: async (count) => {
    for (let index = 0; index < count; index += 1) await open()
  },
  say: async (text) => {
    const [queue] = queues
    if (queue) await say(queue, text)
  },
})
