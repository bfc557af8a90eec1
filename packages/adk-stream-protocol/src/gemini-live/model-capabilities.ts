/** `projects/…/models/gemini-x` and `models/gemini-x` are `gemini-x`. */
const bareName = (model: string): string => model.slice(model.lastIndexOf('/') + 1)

const isFlashLive = (name: string): boolean => /^gemini-3\.\d+-flash-live/.test(name)

/** Whether a model takes text as `realtimeInput`, and `clientContent` only as a history at the start. Other models take it at any time. */
export function takesTextAsRealtime(model: string): boolean {
  return isFlashLive(bareName(model))
}

/** Whether a model reads `audio` and `video`. Older models read the deprecated `mediaChunks`. */
export function takesNamedMedia(model: string): boolean {
  const name = bareName(model)
  return name.startsWith('gemini-3') || name.includes('native-audio')
}

/** Whether a live model completes a turn with calls at once, and not after their results. Public reports differ by generation. */
export function completesCalls(model: string): boolean {
  return !isFlashLive(bareName(model))
}

/**
 * Whether a live model takes functions declared `NON_BLOCKING`, and `scheduling` in their responses. By Google's model pages: the
 * 2.x live models do, `gemini-3.1-flash-live-preview` does not ("function calling is synchronous only"), `gemini-3.8-live` does it
 * by default. Returns false for an unknown model: it might reject the setup.
 */
export function takesNonBlockingCalls(model: string): boolean {
  const name = bareName(model)
  if (isFlashLive(name)) return false
  return /^gemini-(?:2\.\d+-flash-(?:live|native-audio)|live-2\.\d+-|3\.\d+-live)/.test(name)
}

/** Whether a model thinks and sends its thoughts. Returns false for an unknown model: it might reject the setup. */
export function supportsThoughts(model: string): boolean {
  const name = bareName(model)
  return isFlashLive(name) || name.includes('native-audio')
}
