import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { type Emulator, startEmulator } from 'gemini-emulator'
import { type Browser, type Page } from 'playwright-core'
import { build, type InlineConfig } from 'vite'

import {
  type TemporaryDirectory,
  temporaryDirectory,
} from '../../test/support/temporary-directory.ts'
import { PAGE_TIMEOUT_MS } from './browser-contexts.ts'
import { launchChromium, microphoneFlags } from './launch-chromium.ts'
import { type Tone, writeWav } from './make-wav.ts'
import { serveWithBridge } from './serve-with-bridge.ts'

/**
 * A small page with voice, served with the demo's security headers, and an emulated live model. When it is disposed, it throws if a
 * page had an exception or violated the security policy.
 */
export interface VoiceTestPage extends AsyncDisposable {
  readonly emulator: Emulator
  readonly url: string
  /** Returns all audio that the model has received, as 16 bit PCM at 16 kHz. */
  receivedAudio(): Buffer
  /** Returns the number of audio samples that the model has sent. */
  countSentSamples(): number
  /** Opens the page with a microphone that plays these tones in a loop. Without tones, there is no microphone. */
  openPage(options: OpenPageOptions): Promise<Page>
}

interface OpenPageOptions {
  readonly tones?: readonly Tone[]
  readonly microphone?: 'granted' | 'denied'
  readonly url?: string
}

/** Serves a page of {@link buildVoicePage} with an emulator of its own: speech that another test sent gets no reply here. */
export async function openVoiceTestPage(pageDir: string): Promise<VoiceTestPage> {
  const directory = await temporaryDirectory()
  const emulator = await startEmulator({
    paceMs: 5,
    live: { recordAudio: true, keepFrames: 10_000, playback: 'real-time' },
  })
  const server = await serveWithBridge(emulator, { pageDir, dataDir: directory.path })
  const browsers: Browser[] = []
  const errors: string[] = []
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
    async [Symbol.asyncDispose]() {
      await Promise.all(browsers.map((browser) => browser.close()))
      await server[Symbol.asyncDispose]()
      await emulator.close()
      await directory[Symbol.asyncDispose]()
      if (errors.length > 0) throw new Error(`The page had errors: ${errors.join(', ')}`)
    },
  }
}

// Browsers do not treat HTTP pages of other hosts than localhost as secure.
const INSECURE_HOST = ['--host-resolver-rules=MAP voice.test 127.0.0.1']

/** `source` is the library's source, built like the demo's page. `package` is the published package, built with the defaults of Vite. */
export async function buildVoicePage(library: 'source' | 'package'): Promise<TemporaryDirectory> {
  const directory = await temporaryDirectory()
  const configFile = fileURLToPath(new URL('../../apps/demo/vite.config.ts', import.meta.url))
  const config: InlineConfig = {
    root: fileURLToPath(new URL('../voice-page', import.meta.url)),
    configFile: library === 'source' && configFile,
    mode: 'test',
    logLevel: 'error',
    build: { outDir: directory.path, emptyOutDir: true },
  }
  await build(config)
  return directory
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
