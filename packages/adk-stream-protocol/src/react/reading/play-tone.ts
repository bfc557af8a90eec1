/** Plays two short tones. A browser that has heard no click yet plays nothing. */
export function playTone(): void {
  if (typeof AudioContext === 'undefined') return
  const context = new AudioContext()
  if (context.state !== 'running') return void context.close()
  const gain = context.createGain()
  gain.connect(context.destination)
  const { currentTime: start } = context
  gain.gain.setValueAtTime(0, start)
  gain.gain.linearRampToValueAtTime(0.12, start + 0.02)
  gain.gain.setValueAtTime(0.12, start + 0.26)
  gain.gain.linearRampToValueAtTime(0, start + 0.32)
  const oscillator = context.createOscillator()
  oscillator.frequency.setValueAtTime(660, start)
  oscillator.frequency.setValueAtTime(880, start + 0.15)
  oscillator.connect(gain)
  oscillator.addEventListener('ended', () => void context.close())
  oscillator.start(start)
  oscillator.stop(start + 0.34)
}
