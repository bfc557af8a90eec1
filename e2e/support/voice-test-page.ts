import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { type Emulator, startEmulator } from 'gemini-emulator'
import { type Browser, type Page } from 'playwright-core'
import { build, type InlineConfig } from 'vite'

import { temporaryDirectory } from '../../test/support/temporary-directory.ts'
import { PAGE_TIMEOUT_MS } from './browser-contexts.ts'
import { launchChromium, microphoneFlags } from './launch-chromium.ts'
import { type Tone, writeWav } from './make-wav.ts'
import { serveWithBridge } from './serve-with-bridge.ts'

/** A small page with voice, served with the demo's security headers, and an emulated live model. */
export interface VoiceTestPage extends AsyncDisposable {
  readonly emulator: Emulator
  readonly url: string
  /** Returns all audio that the model has received, as 16 bit PCM at 16 kHz. */
  receivedAudio(): Buffer
  /** Returns the number of audio samples that the model has sent. */
  countSentSamples(): number
  /** Opens the page with a microphone that plays these tones in a loop. Without tones, there is no microphone. */
  openPage(options: OpenPageOptions): Promise<Page>
  /** Closes the browsers. Throws if a page had an exception or violated the security policy. */
  closePages(): Promise<void>
}

interface OpenPageOptions {
  readonly tones?: readonly Tone[]
  readonly microphone?: 'granted' | 'denied'
  readonly url?: string
}

/** `source` is the library's source, built like the demo's page. `package` is the published package, built with the defaults of Vite. */
export async function openVoiceTestPage(library: 'source' | 'package'): Promise<VoiceTestPage> {
  const directory = await temporaryDirectory()
  await buildVoicePage(library, join(directory.path, 'page'))
  const emulator = await startEmulator({
    paceMs: 5,
    live: { recordAudio: true, keepFrames: 10_000, playback: 'real-time' },
  })
  const server = await serveWithBridge(emulator, directory.path)
  const browsers: Browser[] = []
  const errors: string[] = []
  const closePages = async (): Promise<void> => {
    await Promise.all(browsers.splice(0).map((browser) => browser.close()))
    const found = errors.splice(0)
    if (found.length > 0) throw new Error(`The page had errors: ${found.join(', ')}`)
  }
  return {
    emulator,
    url: server.url,
    countSentSamples: () =>
      emulator.live.sessions
        .flatMap(({ sent }) => sent.map(readSentAudio))
        .reduce((sum, { length }) => sum + length / 2, 0),
    receivedAudio: () =>
      Buffer.concat(
        emulator.live.sessions.flatMap(({ received }) => received.map(readReceivedAudio)),
      ),
    openPage: async ({ tones, microphone, url = server.url }) => {
      const wav = join(await mkdtemp(join(directory.path, 'wav-')), 'microphone.wav')
      if (tones) await writeWav(wav, tones)
      const browser = await launchChromium(tones ? microphoneFlags(wav, microphone) : INSECURE_HOST)
      browsers.push(browser)
      const page = await browser.newPage()
      page.setDefaultTimeout(PAGE_TIMEOUT_MS)
      page.on('pageerror', ({ message }) => errors.push(message))
      page.on('console', (line) => {
        if (line.text().includes('Content Security Policy')) errors.push(line.text())
      })
      await page.goto(url)
      return page
    },
    closePages,
    async [Symbol.asyncDispose]() {
      await closePages()
      await server[Symbol.asyncDispose]()
      await emulator.close()
      await directory[Symbol.asyncDispose]()
    },
  }
}

// Browsers do not treat HTTP pages of other hosts than localhost as secure.
const INSECURE_HOST = ['--host-resolver-rules=MAP voice.test 127.0.0.1']

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

function readReceivedAudio({ realtimeInput }: Readonly<Record<string, unknown>>): Buffer {
  const { audio } = (realtimeInput ?? {}) as { audio?: { data?: string } }
  return Buffer.from(audio?.data ?? '', 'base64')
}

function readSentAudio({ serverContent }: Readonly<Record<string, unknown>>): Buffer {
  const { modelTurn } = (serverContent ?? {}) as {
    modelTurn?: { parts?: { inlineData?: { data?: string } }[] }
  }
  return Buffer.concat(
    (modelTurn?.parts ?? []).map(({ inlineData }) => Buffer.from(inlineData?.data ?? '', 'base64')),
  )
}
