import type { Page } from 'playwright-core'

/** What comes out of the loudspeakers of a page, by the sample rate of what makes it: the voice has one of its own. */
export interface Sound {
  /** Samples that were not silence. */
  readonly samples: number
  /** The loudness of the newest 50 ms or so, from 0 to 1. */
  readonly level: number
}

interface Listening {
  readonly sounds: Record<number, Sound>
}

const VOICE_RATE = 24_000

/** Puts an ear between a page and its loudspeakers; before the page is opened. */
export async function listenTo(page: Page): Promise<void> {
  // Where `tsx` runs this, it gives functions their names by a helper that no page has.
  await page.addInitScript('globalThis.__name ??= (named) => named')
  await page.addInitScript(() => {
    const sounds: Record<number, Sound> = {}
    Object.assign(window, { sounds })
    const connect = Reflect.get(AudioNode.prototype, 'connect') as (
      this: AudioNode,
      ...to: unknown[]
    ) => unknown
    const listen = (context: BaseAudioContext): AnalyserNode => {
      const ear = new AnalyserNode(context, { fftSize: 8192 })
      const heard = new Float32Array(ear.fftSize)
      let lastAt = context.currentTime
      setInterval(() => {
        const fresh = Math.round((context.currentTime - lastAt) * context.sampleRate)
        if (fresh === 0) return
        lastAt = context.currentTime
        ear.getFloatTimeDomainData(heard)
        const newest = heard.subarray(-fresh)
        const loud = newest.filter((sample) => Math.abs(sample) > 0.001).length
        const power = newest.reduce((sum, sample) => sum + sample * sample, 0) / newest.length
        const before = sounds[context.sampleRate]?.samples ?? 0
        sounds[context.sampleRate] = { samples: before + loud, level: Math.sqrt(power) }
      }, 50)
      return ear
    }
    AudioNode.prototype.connect = function (this: AudioNode, ...to: unknown[]) {
      if (to[0] instanceof AudioDestinationNode) connect.call(this, listen(this.context))
      return connect.call(this, ...to)
    } as AudioNode['connect']
  })
}

/** What the model's voice sounds like now. */
export async function hearVoice(page: Page): Promise<Sound> {
  return (await hear(page))[VOICE_RATE] ?? { samples: 0, level: 0 }
}

export async function hearMusic(page: Page): Promise<Sound> {
  const others = Object.entries(await hear(page)).filter(([rate]) => Number(rate) !== VOICE_RATE)
  return others[0]?.[1] ?? { samples: 0, level: 0 }
}

function hear(page: Page): Promise<Record<number, Sound>> {
  return page.evaluate(() => (window as unknown as Listening).sounds)
}
