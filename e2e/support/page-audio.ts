import type { Page } from 'playwright-core'

/** The audio that a page has played. */
export interface PlayedAudio {
  /** The number of samples that were not silent. */
  readonly samples: number
  /** The level of about the last 50 ms, from 0 to 1. */
  readonly level: number
}

interface CapturedWindow {
  /** By sample rate. The voice has a sample rate of its own. */
  readonly playedAudio: Record<number, PlayedAudio>
}

const VOICE_RATE = 24_000

/** Measures the audio that a page plays. Must be called before the page is opened. */
export async function captureAudio(page: Page): Promise<void> {
  // `tsx` adds calls of a helper that sets the names of functions. Pages do not have it.
  await page.addInitScript('globalThis.__name ??= (named) => named')
  await page.addInitScript(() => {
    const playedAudio: Record<number, PlayedAudio> = {}
    Object.assign(window, { playedAudio })
    const connect = Reflect.get(AudioNode.prototype, 'connect') as (
      this: AudioNode,
      ...to: unknown[]
    ) => unknown
    const analyse = (context: BaseAudioContext): AnalyserNode => {
      const analyser = new AnalyserNode(context, { fftSize: 8192 })
      const buffer = new Float32Array(analyser.fftSize)
      let lastAt = context.currentTime
      setInterval(() => {
        const count = Math.round((context.currentTime - lastAt) * context.sampleRate)
        if (count === 0) return
        lastAt = context.currentTime
        analyser.getFloatTimeDomainData(buffer)
        const newest = buffer.subarray(-count)
        const loud = newest.filter((sample) => Math.abs(sample) > 0.001).length
        const power = newest.reduce((sum, sample) => sum + sample * sample, 0) / newest.length
        const before = playedAudio[context.sampleRate]?.samples ?? 0
        playedAudio[context.sampleRate] = { samples: before + loud, level: Math.sqrt(power) }
      }, 50)
      return analyser
    }
    AudioNode.prototype.connect = function (this: AudioNode, ...to: unknown[]) {
      if (to[0] instanceof AudioDestinationNode) connect.call(this, analyse(this.context))
      return connect.call(this, ...to)
    } as AudioNode['connect']
  })
}

/** Returns the audio of the model's voice. */
export async function readVoiceAudio(page: Page): Promise<PlayedAudio> {
  return (await readAudio(page))[VOICE_RATE] ?? { samples: 0, level: 0 }
}

/** Returns the audio of the music. */
export async function readMusicAudio(page: Page): Promise<PlayedAudio> {
  const others = Object.entries(await readAudio(page)).filter(
    ([rate]) => Number(rate) !== VOICE_RATE,
  )
  return others[0]?.[1] ?? { samples: 0, level: 0 }
}

function readAudio(page: Page): Promise<Record<number, PlayedAudio>> {
  return page.evaluate(() => (window as unknown as CapturedWindow).playedAudio)
}
