;; Products of vectors with weights, where nearly all time of a translation goes: y[m, n] = sum of x[m, k] w[n, k] over k, + bias[n].
;; Weights are float32, or int8 with a scale per output; then x is int16 with a scale per row: eight products an instruction, a quarter
;; of the memory, and nothing to unpack. They lie in the order of reading: 16 bytes of each of four outputs, then their next 16 bytes.
;; So x is read once for four outputs, and the weights once, from memory, for all rows of x: four outputs fit the fastest cache.
(module
 (memory (export "memory") 1)

 ;; The sums of four registers.
 (func $sums (param $a v128) (param $b v128) (param $c v128) (param $d v128) (result v128)
  (local.set $a (f32x4.add (i8x16.shuffle 0 1 2 3 16 17 18 19 4 5 6 7 20 21 22 23 (local.get $a) (local.get $b))
   (i8x16.shuffle 8 9 10 11 24 25 26 27 12 13 14 15 28 29 30 31 (local.get $a) (local.get $b))))
  (local.set $c (f32x4.add (i8x16.shuffle 0 1 2 3 16 17 18 19 4 5 6 7 20 21 22 23 (local.get $c) (local.get $d))
   (i8x16.shuffle 8 9 10 11 24 25 26 27 12 13 14 15 28 29 30 31 (local.get $c) (local.get $d))))
  (f32x4.add (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $a) (local.get $c))
   (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $a) (local.get $c))))

 ;; M rows, N outputs (a multiple of 4); columns: bytes of an output (a multiple of 16). Without scales, w is float32.
 (func (export "multiply") (param $x i32) (param $xScales i32) (param $w i32) (param $scales i32) (param $bias i32) (param $y i32)
  (param $M i32) (param $N i32) (param $columns i32)
  (local $n i32) (local $xAt i32) (local $xScale i32) (local $wAt i32) (local $yAt i32) (local $row i32) (local $wEnd i32)
  (local $t v128) (local $u v128) (local $v v128) (local $a v128) (local $b v128) (local $c v128) (local $d v128)
  (loop $outputs
   (local.set $xAt (local.get $x))
   (local.set $yAt (local.get $y))
   (local.set $row (i32.const 0))
   (local.set $wEnd (i32.add (local.get $w) (i32.shl (local.get $columns) (i32.const 2))))
   (loop $rows
    (local.set $wAt (local.get $w))
    (local.set $a (local.tee $b (local.tee $c (local.tee $d (v128.const i32x4 0 0 0 0)))))
    (if (local.get $scales) (then
     (loop $integers
      (local.set $u (v128.load (local.get $xAt)))
      (local.set $v (v128.load offset=16 (local.get $xAt)))
      (local.set $t (v128.load (local.get $wAt)))
      (local.set $a (i32x4.add (local.get $a) (i32x4.add (i32x4.dot_i16x8_s (local.get $u) (i16x8.extend_low_i8x16_s (local.get $t)))
       (i32x4.dot_i16x8_s (local.get $v) (i16x8.extend_high_i8x16_s (local.get $t))))))
      (local.set $t (v128.load offset=16 (local.get $wAt)))
      (local.set $b (i32x4.add (local.get $b) (i32x4.add (i32x4.dot_i16x8_s (local.get $u) (i16x8.extend_low_i8x16_s (local.get $t)))
       (i32x4.dot_i16x8_s (local.get $v) (i16x8.extend_high_i8x16_s (local.get $t))))))
      (local.set $t (v128.load offset=32 (local.get $wAt)))
      (local.set $c (i32x4.add (local.get $c) (i32x4.add (i32x4.dot_i16x8_s (local.get $u) (i16x8.extend_low_i8x16_s (local.get $t)))
       (i32x4.dot_i16x8_s (local.get $v) (i16x8.extend_high_i8x16_s (local.get $t))))))
      (local.set $t (v128.load offset=48 (local.get $wAt)))
      (local.set $d (i32x4.add (local.get $d) (i32x4.add (i32x4.dot_i16x8_s (local.get $u) (i16x8.extend_low_i8x16_s (local.get $t)))
       (i32x4.dot_i16x8_s (local.get $v) (i16x8.extend_high_i8x16_s (local.get $t))))))
      (local.set $xAt (i32.add (local.get $xAt) (i32.const 32)))
      (br_if $integers (i32.lt_u (local.tee $wAt (i32.add (local.get $wAt) (i32.const 64))) (local.get $wEnd))))
     (local.set $t (call $sums (f32x4.convert_i32x4_s (local.get $a)) (f32x4.convert_i32x4_s (local.get $b))
      (f32x4.convert_i32x4_s (local.get $c)) (f32x4.convert_i32x4_s (local.get $d))))
     (local.set $u (v128.load32_splat (i32.add (local.get $xScales) (i32.shl (local.get $row) (i32.const 2)))))
     (local.set $t (f32x4.mul (local.get $t) (f32x4.mul (local.get $u) (v128.load (local.get $scales))))))
    (else
     (loop $floats
      (local.set $u (v128.load (local.get $xAt)))
      (local.set $a (f32x4.add (local.get $a) (f32x4.mul (local.get $u) (v128.load (local.get $wAt)))))
      (local.set $b (f32x4.add (local.get $b) (f32x4.mul (local.get $u) (v128.load offset=16 (local.get $wAt)))))
      (local.set $c (f32x4.add (local.get $c) (f32x4.mul (local.get $u) (v128.load offset=32 (local.get $wAt)))))
      (local.set $d (f32x4.add (local.get $d) (f32x4.mul (local.get $u) (v128.load offset=48 (local.get $wAt)))))
      (local.set $xAt (i32.add (local.get $xAt) (i32.const 16)))
      (br_if $floats (i32.lt_u (local.tee $wAt (i32.add (local.get $wAt) (i32.const 64))) (local.get $wEnd))))
     (local.set $t (call $sums (local.get $a) (local.get $b) (local.get $c) (local.get $d)))))
    (v128.store (local.get $yAt) (f32x4.add (local.get $t) (v128.load (local.get $bias))))
    (local.set $yAt (i32.add (local.get $yAt) (i32.shl (local.get $N) (i32.const 2))))
    (br_if $rows (i32.lt_u (local.tee $row (i32.add (local.get $row) (i32.const 1))) (local.get $M))))
   (local.set $w (local.get $wEnd))
   (local.set $y (i32.add (local.get $y) (i32.const 16)))
   (local.set $bias (i32.add (local.get $bias) (i32.const 16)))
   (if (local.get $scales) (then (local.set $scales (i32.add (local.get $scales) (i32.const 16)))))
   (br_if $outputs (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 4))) (local.get $N))))))
