import type { Blob } from '@google/genai'

/**
 * The end of sound. ADK's `LiveRequestQueue` has no word for it, and what does not go through the queue overtakes the sound that
 * does: this one empty piece of sound stands for it there.
 */
export const AUDIO_END: Blob = Object.freeze({ mimeType: 'audio/pcm', data: '' })
