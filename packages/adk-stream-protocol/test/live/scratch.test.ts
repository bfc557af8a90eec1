import { FunctionTool, Gemini, LlmAgent, setLogger } from '@google/adk'
import { Modality } from '@google/genai'
import { startEmulator } from 'gemini-emulator'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { Ledger } from '../../src/approvals/ledger.ts'
import { LastingModel } from "../../src/adk/live/lasting-model.ts"
import { LiveRun } from '../../src/live/live-run.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { Turns } from '../../src/turns/turns.ts'
import { runTurn } from '../../src/turns/run-turn.ts'
import type { Turn } from '../../src/turns/turn.ts'
import { tellStoredTurn, splitTurns, closeAtPause } from '../../src/adk/stored-turns.ts'

setLogger(null)

class EmulatedGemini extends Gemini {
  readonly #baseUrl: string
  constructor(baseUrl: string, model: string) {
    super({ model, apiKey: 'a key' })
    this.#baseUrl = baseUrl
  }
  protected override getLiveHttpOptions() {
    return { ...super.getLiveHttpOptions(), baseUrl: this.#baseUrl }
  }
}

async function lab(model: string, free: boolean) {
  const emulator = await startEmulator({ paceMs: 0 })
  const store = await openSqliteStore({ path: ':memory:' })
  const ran: unknown[] = []
  const pay = new FunctionTool({
    name: 'pay', description: 'Pays.', parameters: z.object({ amount: z.number() }), requireConfirmation: true,
    execute: (args) => { ran.push(args); return { paid: args.amount } },
  })
  const look = new FunctionTool({ name: 'look', description: 'Looks.', parameters: z.object({}), execute: () => ({ seen: 'a cat' }) })
  const agent = new LlmAgent({ name: 'assistant', model: new EmulatedGemini(emulator.baseUrl, model), tools: [pay, look] })
  const ledger = new Ledger({ store: store.approvals, appName: 'app' })
  const chat = { appName: 'app', principalId: 'p', chatId: 'c' }
  const turns = new Turns({ disconnectGraceMs: 60_000, maxLag: 1e6, stallTimeoutMs: 1e4, maxReplay: 1e6, whileRunning: 'refuse', maxTurnsPerPrincipal: 16, maxQueued: 8 })
  const errors: unknown[] = []
  const started: Turn[] = []
  const log: string[] = []
  const exposeState = () => true
  const run = new LiveRun({
    chat, agent, ledger,
    services: { appName: 'app', sessionService: store.sessions },
    openModel: (hooks) => new LastingModel(agent.canonicalModel as Gemini, { hooks }),
    runConfig: { responseModalities: [Modality.TEXT] },
    free, completesCalls: !model.includes('3.1'),
    terms: { policy: {}, deadlineMs: undefined, onError: (e) => errors.push(e) },
    onError: (e) => errors.push(e),
    openTurn: async (messageId, { events, resumes, background }) => {
      let told: ReturnType<typeof tellStoredTurn> | undefined
      return turns.begin({ principalId: 'p', chatId: 'c' }, messageId, {
        patient: true, background,
        ...(resumes && { prepare: async (turn: Turn) => {
          const session = await store.sessions.getSession({ appName: 'app', userId: 'p', sessionId: 'c' })
          const stored = splitTurns(session?.events ?? []).find((t) => t.messageId === messageId)
          if (!stored) return
          events.skip(new Set(stored.runs.flat().map((e) => e.id)))
          told = closeAtPause(tellStoredTurn(stored, { exposeState }))
          turn.log.append({ type: 'start', messageId })
          turn.log.markPause()
          for (const c of told.chunks) turn.log.append(c)
        } }),
        run: async (turn) => { await runTurn(turn, events, { exposeState, onError: (e) => errors.push(e), onChunk: undefined, ...(told && { from: told.state }) }) },
      })
    },
    listener: { onTurn: (t) => started.push(t), onHeard: (_m, t) => log.push(`heard ${t}`), onTranscript: () => undefined, onInterrupted: () => log.push('interrupted'), onStatus: (s) => log.push(s) },
  })
  ledger.onChange((a) => run.approvalChanged(a))
  const read = async (turn: Turn) => {
    const out: { type: string; [k: string]: unknown }[] = []
    await new Promise<void>((resolve) => turn.attach({ write: (j) => (out.push(JSON.parse(j)), true), end: resolve, abandon: resolve }))
    return out
  }
  return { emulator, store, ledger, run, turns, read, ran, errors, started, log, chat,
    say: (text: string) => run.say({ role: 'user', parts: [{ text }] }, { userMessageId: `u-${text.length}` }),
    close: async () => { await run.close(); await store.close(); await emulator.close() } }
}

for (const [model, free] of [['gemini-2.5-flash-native-audio-preview-12-2025', false], ['gemini-3.1-flash-live-preview', false], ['gemini-2.5-flash-native-audio-preview-12-2025', true]] as const) {
  test(`LV0 ${model} ${free}`, async () => {
    const l = await lab(model, free)
    const show = (chunks: { type: string; [k: string]: unknown }[]) => chunks.map((c) => `${c.type}${c['delta'] ? `(${String(c['delta'])})` : ''}${c['output'] ? JSON.stringify(c['output']) : ''}${c['finishReason'] ? `:${String(c['finishReason'])}` : ''}`).join(' ')
    console.log(show(await l.read(await l.say('[[say Hello]]'))))
    console.log(show(await l.read(await l.say('[[call look {}]] [[then]] [[say A cat.]]'))))
    console.log(show(await l.read(await l.say('[[call pay {"amount":30}]] [[call pay {"amount":40}]] [[then]] [[say Done.]] [[then]] [[say Done2.]]'))))
    const [first, second] = await l.ledger.pendingOf(l.chat)
    console.log(l.started.length, first?.args, second?.args)
    const p = new Promise<void>((r) => { const t = setInterval(() => { if (l.started.length > 0) { clearInterval(t); r() } }, 5) })
    await l.ledger.decide(second!.id, { by: { id: 'p', roles: [] }, approved: true })
    await l.ledger.decide(first!.id, { by: { id: 'p', roles: [] }, approved: false, reason: 'no' })
    await p
    console.log(show(await l.read(l.started[0]!)))
    await new Promise((r) => setTimeout(r, 300))
    for (const t of l.started.slice(1)) console.log('more', show(await l.read(t)))
    const session = await l.store.sessions.getSession({ appName: 'app', userId: 'p', sessionId: 'c' })
    console.log(l.ran, l.errors, l.log.join(), session?.events.map((e) => `${e.author}:${JSON.stringify(e.content?.parts?.map((x) => x.text ?? x.functionCall?.name ?? x.functionResponse?.response))}`).join('\n'))
    await l.close()
    expect(1).toBe(1)
  })
}
