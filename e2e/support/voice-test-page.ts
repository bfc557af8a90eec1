import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { type Emulator, startEmulator } from 'gemini-emulator'
import { type Browser, type Page } from 'playwright-core'
import { build, type InlineConfig } from 'vite'

import { temporaryDirectory } from '../../apps/demo/test/support/temporary-directory.ts'
import { PATIENCE_MS } from './browser-contexts.ts'
import { launchChromium, microphoneFlags } from './launch-chromium.ts'
import { type Tone, writeWav } from './make-wav.ts'
import { serveWithBridge } from './serve-with-bridge.ts'

/** A small page with a voice in it, under the demo's policy, in front of a model that hears and speaks. */
export interface VoiceTestPage extends AsyncDisposable {
  readonly emulator: Emulator
  readonly url: string
  /** All that the model heard, as 16 bit PCM at 16 kHz. */
  heard(): Buffer
  /** Samples that the model has spoken. */
  spoken(): number
  /** Opens the page with a microphone that hears these tones, over and over; without any, there is none. */
  visit(visit: VisitOptions): Promise<Page>
  /** Closes the browsers; throws if anything went wrong in a page. */
  leave(): Promise<void>
}

interface VisitOptions {
  readonly tones?: readonly Tone[]
  readonly person?: 'allows' | 'refuses'
  readonly url?: string
}

/** `source`: the library's source, built as the demo's page is. `package`: what is published, built by Vite as it comes. */
export async function openVoiceTestPage(library: 'source' | 'package'): Promise<VoiceTestPage> {
  const directory = await temporaryDirectory()
  await buildVoicePage(library, join(directory.path, 'page'))
  const emulator = await startEmulator({
    paceMs: 5,
    live: { recordAudio: true, keepFrames: 10_000, playback: 'real-time' },
  })
  const server = await serveWithBridge(emulator, directory.path)
  const browsers: Browser[] = []
  const faults: string[] = []
  const leave = async (): Promise<void> => {
    await Promise.all(browsers.splice(0).map((browser) => browser.close()))
    const found = faults.splice(0)
    if (found.length > 0) throw new Error(`The page had faults: ${found.join(', ')}`)
  }
  return {
    emulator,
    url: server.url,
    spoken: () =>
      emulator.live.sessions
        .flatMap(({ sent }) => sent.map(readSpeech))
        .reduce((sum, { length }) => sum + length / 2, 0),
    heard: () =>
      Buffer.concat(emulator.live.sessions.flatMap(({ received }) => received.map(readSound))),
    visit: async ({ tones, person, url = server.url }) => {
      const wav = join(await mkdtemp(join(directory.path, 'wav-')), 'microphone.wav')
      if (tones) await writeWav(wav, tones)
      const browser = await launchChromium(tones ? microphoneFlags(wav, person) : NOBODY)
      browsers.push(browser)
      const page = await browser.newPage()
      page.setDefaultTimeout(PATIENCE_MS)
      page.on('pageerror', ({ message }) => faults.push(message))
      page.on('console', (line) => {
        if (line.text().includes('Content Security Policy')) faults.push(line.text())
      })
      await page.goto(url)
      return page
    },
    leave,
    async [Symbol.asyncDispose]() {
      await leave()
      await server[Symbol.asyncDispose]()
      await emulator.close()
      await directory[Symbol.asyncDispose]()
    },
  }
}

// A name that is not the computer's own is a page that browsers do not trust.
const NOBODY = ['--host-resolver-rules=MAP voice.test 127.0.0.1']

async function buildVoicePage(library: 'source' | 'package', outDir: string): Promise<void> {
  const configFile = fileURLToPath(new URL('../../apps/demo/vite.config.ts', import.meta.url))
  const config: InlineConfig = {
    root: fileURLToPath(new URL('../voice-page', import.meta.url)),
    configFile: library === 'source' && configFile,
    mode: 'test',
    logLevel: 'error',
    build: { outDir },
  }
  await build(config)
}

function readSound({ realtimeInput }: Readonly<Record<string, unknown>>): Buffer {
  const { audio } = (realtimeInput ?? {}) as { audio?: { data?: string } }
  return Buffer.from(audio?.data ?? '', 'base64')
}

function readSpeech({ serverContent }: Readonly<Record<string, unknown>>): Buffer {
  const { modelTurn } = (serverContent ?? {}) as {
    modelTurn?: { parts?: { inlineData?: { data?: string } }[] }
  }
  return Buffer.concat(
    (modelTurn?.parts ?? []).map(({ inlineData }) => Buffer.from(inlineData?.data ?? '', 'base64')),
  )
}
