/** `projects/…/models/gemini-x` and `models/gemini-x` are `gemini-x`. */
const bareName = (model: string): string => model.slice(model.lastIndexOf('/') + 1)

const isFlashLive = (name: string): boolean => /^gemini-3\.\d+-flash-live/.test(name)

/**
 * Models that take text as `realtimeInput`, and `clientContent` only as a history before the conversation begins. Others take
 * content at any time.
 */
export function takesTextAsRealtime(model: string): boolean {
  return isFlashLive(bareName(model))
}

/** Models that want audio and images under names of their own, where older ones read the deprecated `mediaChunks`. */
export function takesNamedMedia(model: string): boolean {
  const name = bareName(model)
  return name.startsWith('gemini-3') || name.includes('native-audio')
}

/** Whether a live model completes a turn at once that ends in calls, or when they are answered: public reports differ by generation. */
export function completesCalls(model: string): boolean {
  return !isFlashLive(bareName(model))
}

/**
 * Whether a live model takes functions declared `NON_BLOCKING`, and `scheduling` in their responses. By Google's model pages: the
 * 2.x live models do, `gemini-3.1-flash-live-preview` does not ("function calling is synchronous only"), `gemini-3.8-live` does it
 * by default. A model that is not known to do so is taken not to: it would refuse the setup.
 */
export function takesNonBlockingCalls(model: string): boolean {
  const name = bareName(model)
  if (isFlashLive(name)) return false
  return /^gemini-(?:2\.\d+-flash-(?:live|native-audio)|live-2\.\d+-|3\.\d+-live)/.test(name)
}

/** Models that think, and tell what they thought. One that is not known to do so is not asked: it would refuse the setup. */
export function tellsThoughts(model: string): boolean {
  const name = bareName(model)
  return isFlashLive(name) || name.includes('native-audio')
}
